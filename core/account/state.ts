/** The state of an account, folded from its stream. */
import type { Timestamp } from '../kernel/ids.ts';
import type { VaultRef } from '../kernel/vault-ref.ts';
import type { AccountBuckets } from './buckets/state.ts';
import { type AccountMfa, hasActiveMfaToken } from './mfa/state.ts';
import type { Plan } from './plans.ts';
import type { OwnedRepositories } from './repositories/state.ts';
import type { AccountTrustRules } from './trust-rules/state.ts';
import type { AccountWebhooks } from './webhooks/state.ts';

/** The states of all facets, as members of one object. */
export interface AccountFacets
  extends OwnedRepositories,
    AccountWebhooks,
    AccountMfa,
    AccountBuckets,
    AccountTrustRules {}

interface AccountContents extends AccountFacets {
  readonly username: string;
  readonly emailRef: VaultRef;
  readonly passwordHashRef: VaultRef;
  readonly plan: Plan;
  readonly createdAt: Timestamp;
  /** Counts the events of the account itself that end its sessions; `sessionEpochOf` is the whole count. */
  readonly sessionsEnded: number;
  /** The address that the last change replaced; null if there was no change. */
  readonly formerEmail: FormerEmail | null;
}

/** An address that an account had: its record is to be removed from the vault, and its claim to be released. */
export interface FormerEmail {
  readonly ref: VaultRef;
  /** The name of its claim; null if the next address has the same claim. */
  readonly claim: string | null;
}

export interface OpenAccount extends AccountContents {
  readonly status: 'open';
}

/** Nobody can use the account, but its owner may undo the deletion until `eraseAt`. */
export interface ClosedAccount extends AccountContents {
  readonly status: 'closed';
  readonly closedAt: Timestamp;
  /** From this time on the account is to be erased. */
  readonly eraseAt: Timestamp;
}

/** Nobody can use the account. The state keeps only what its erasure still needs; `repositories` are to be deleted. */
export interface ErasedAccount extends OwnedRepositories {
  readonly status: 'erased';
  /** Remains claimed: it is the pseudonym by which the log names the account. */
  readonly username: string;
  /** Leads to the claim of the email address while the vault can still read it. */
  readonly emailRef: VaultRef;
  readonly formerEmail: FormerEmail | null;
}

/**
 * Returns the account's session epoch. It grows with every change of who may enter, and a session is valid only while
 * the epoch is the one that it began in. A facet whose events end sessions adds its own count here.
 */
export function sessionEpochOf(account: OpenAccount | ClosedAccount): number {
  return account.sessionsEnded + account.mfaChanges;
}

/** Returns true if signing in takes a second factor besides the password. */
export function needsSecondFactor(account: OpenAccount | ClosedAccount): boolean {
  return hasActiveMfaToken(account);
}

export type Account =
  | { readonly status: 'absent' }
  | { readonly status: 'abandoned' }
  | OpenAccount
  | ClosedAccount
  | ErasedAccount;
