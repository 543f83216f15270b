/** The state of an account, folded from its stream. */
import type { Timestamp } from '../kernel/ids.ts';
import type { VaultRef } from '../ports/vault.ts';
import type { AccountMfa } from './mfa/state.ts';
import type { Plan } from './plans.ts';
import type { OwnedRepositories } from './repositories/state.ts';
import type { AccountWebhooks } from './webhooks/state.ts';

/** The states of all facets, as members of one object. */
export interface AccountFacets extends OwnedRepositories, AccountWebhooks, AccountMfa {}

interface AccountContents extends AccountFacets {
  readonly username: string;
  readonly emailRef: VaultRef;
  readonly passwordHashRef: VaultRef;
  readonly plan: Plan;
  readonly createdAt: Timestamp;
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
  /** Leads to the claim of the e-mail address while the vault can still read it. */
  readonly emailRef: VaultRef;
}

export type Account =
  | { readonly status: 'absent' }
  | { readonly status: 'abandoned' }
  | OpenAccount
  | ClosedAccount
  | ErasedAccount;
