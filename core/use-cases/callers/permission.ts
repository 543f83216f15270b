/**
 * The permissions that a caller needs for an operation, and the repositories that it may know of.
 *
 * Invariants: a repository that the caller may not know of gets the same answer as one that does not exist. After
 * an append conflicts, the same functions check the caller's permissions again before the retry.
 */
import { coversSelection, isSelected } from '../../access-token/repository-selection.ts';
import { type Grant, permits, type Scope } from '../../kernel/grants.ts';
import type { AccountId, RepositoryId } from '../../kernel/ids.ts';
import { grantsOf, type Principal, selectionOf } from './principal.ts';

/** The permissions that an operation needs. If it is about a repository, the caller must also see that repository. */
export interface Requirement {
  /** Null: the operation needs no grant. */
  readonly grant: Grant | null;
  /** Null: either scope is enough. */
  readonly scope: Extract<Scope, 'ALL_REPO'> | null;
  /** Whether a token needs neither the grant nor the scope if it is itself the target of the operation. */
  readonly onItself: boolean;
}

/** What it takes to read who pushed what, and commits that no ref reaches any more (docs/interface.md, Activity). */
export const READS_ACTIVITY = { grant: 'ALL', scope: 'ALL_REPO', onItself: false } as const satisfies Requirement;

/** The first permission of a requirement that a caller does not have. */
export type Lack =
  | { readonly lacks: 'grant'; readonly grant: Grant }
  | { readonly lacks: 'scope'; readonly scope: Extract<Scope, 'ALL_REPO'> };

/**
 * Returns the permission that the caller lacks, or null. `id` names the operation's target, or is empty without one.
 */
export function lackOf(requirement: Requirement, principal: Principal, id: string): Lack | null {
  const { grant, scope, onItself } = requirement;
  if (onItself && isItself(principal, id)) return null;
  if (grant !== null && !permits(grantsOf(principal), grant)) return { lacks: 'grant', grant };
  if (scope !== null && selectionOf(principal).scope !== scope) return { lacks: 'scope', scope };
  return null;
}

function isItself(principal: Principal, id: string): boolean {
  switch (principal.kind) {
    case 'access-token':
    case 'exchanged-token':
      return id.toLowerCase() === principal.tokenId;
    case 'session':
      return false;
  }
}

/** The members of a repository that decide whether a caller sees it. */
export interface OwnedBy {
  readonly id: RepositoryId;
  readonly accountId: AccountId;
}

/** Returns true if the caller may know of the repository: its account owns it, and its selection includes it. */
export function sees(principal: Principal, repository: OwnedBy): boolean {
  return principal.account === repository.accountId && isSelected(selectionOf(principal), repository.id);
}

/** What a request was let in for. */
export interface Admission {
  readonly requirement: Requirement;
  /** The id of what the operation is about, as `lackOf` takes it. */
  readonly id: string;
  /** Null for an operation on the account. */
  readonly repository: OwnedBy | null;
}

/**
 * Returns a check for `guardedBy`: whether the caller, read again, may still do what the request was let in for. An
 * operation on the account may rest on all grants and on the whole selection of repositories that its caller had, so it
 * is refused when the caller has lost any of them.
 */
export function stillPermitted(
  admitted: Principal,
  { requirement, id, repository }: Admission,
): (principal: Principal) => boolean {
  return (principal) => {
    if (lackOf(requirement, principal, id) !== null) return false;
    if (repository !== null) return sees(principal, repository);
    if (!grantsOf(admitted).every((grant) => permits(grantsOf(principal), grant))) return false;
    return coversSelection(selectionOf(principal), selectionOf(admitted));
  };
}
