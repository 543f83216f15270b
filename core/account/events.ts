/**
 * Events of an account, on `account-<id>`. This file has those of the account itself; each facet's folder has its own.
 *
 * Must stay true: every rule that counts or compares within an account is decided on this one stream.
 */
import { type DomainEvent, type EventKinds, RECORD_V1 } from '../kernel/decider.ts';
import type { Plan } from './plans.ts';
import { type MfaEvent, mfaEventKinds } from './mfa/events.ts';
import { type OwnedRepositoryEvent, ownedRepositoryEventKinds } from './repositories/events.ts';
import { type WebhookEvent, webhookEventKinds } from './webhooks/events.ts';

export type AccountCreated = DomainEvent<
  'AccountCreated',
  {
    readonly username: string;
    /** Vault references (docs/architecture.md, invariant 5). */
    readonly email_ref: string;
    readonly password_hash_ref: string;
    readonly plan: Plan;
  }
>;
/** The only event of a stream whose account was never created and never can be: another account took over its claim. */
export type Abandoned = DomainEvent<'Abandoned', Record<never, never>>;
export type PlanChanged = DomainEvent<'PlanChanged', { readonly plan: Plan }>;
export type PasswordChanged = DomainEvent<'PasswordChanged', { readonly password_hash_ref: string }>;

/**
 * The account is deleted for everybody, for ever. A `RepositoryDeleted` follows for each of its repositories. Its data
 * key is destroyed, so nobody can read the vault records that its events refer to.
 */
export type AccountErased = DomainEvent<'AccountErased', Record<never, never>>;

/** The owner deleted the account. Nobody can use it, but its owner may undo the deletion until `erase_at`. */
export type AccountClosed = DomainEvent<
  'AccountClosed',
  {
    /** RFC 3339. From this time on the account is to be erased. */
    readonly erase_at: string;
  }
>;
/** The owner undid the deletion: the account is as it was before `AccountClosed`. */
export type AccountReopened = DomainEvent<'AccountReopened', Record<never, never>>;

/** Events of the account itself. */
export type AccountOwnEvent =
  | AccountCreated
  | Abandoned
  | PlanChanged
  | PasswordChanged
  | AccountClosed
  | AccountReopened
  | AccountErased;

const accountOwnEventKinds: EventKinds<AccountOwnEvent> = {
  AccountCreated: RECORD_V1,
  Abandoned: RECORD_V1,
  PlanChanged: RECORD_V1,
  PasswordChanged: RECORD_V1,
  AccountClosed: RECORD_V1,
  AccountReopened: RECORD_V1,
  AccountErased: RECORD_V1,
};

export type AccountEvent = AccountOwnEvent | OwnedRepositoryEvent | WebhookEvent | MfaEvent;

export const accountEventKinds: EventKinds<AccountEvent> = {
  ...accountOwnEventKinds,
  ...ownedRepositoryEventKinds,
  ...webhookEventKinds,
  ...mfaEventKinds,
};
