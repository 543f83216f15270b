/**
 * Events of an account, on `account-<id>`: itself, the existence and names of its repositories, and its webhooks.
 *
 * Must stay true: every rule that counts or compares within an account is decided on this one stream.
 */
import { type DomainEvent, type EventKinds, RECORD_V1 } from '../kernel/decider.ts';
import type { Plan } from './plans.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';

export type AccountCreated = DomainEvent<
  'AccountCreated',
  {
    readonly username: string;
    /** Vault references (invariant 5). */
    readonly email_ref: string;
    readonly password_hash_ref: string;
    readonly plan: Plan;
  }
>;
/** Stands first in a stream whose account will never come into being: its claim was taken over. */
export type Abandoned = DomainEvent<'Abandoned', Record<never, never>>;
export type PlanChanged = DomainEvent<'PlanChanged', { readonly plan: Plan }>;
export type PasswordChanged = DomainEvent<'PasswordChanged', { readonly password_hash_ref: string }>;

/**
 * The account is gone for everybody, for ever. Its repositories follow one by one (`RepositoryDeleted`), and its data
 * key is destroyed: what its events refer to in the vault can no longer be read.
 */
export type AccountErased = DomainEvent<'AccountErased', Record<never, never>>;

export type RepositoryCreated = DomainEvent<
  'RepositoryCreated',
  {
    readonly repository_id: string;
    readonly name: string;
    readonly description: string | null;
    /** Null: `master` until the first push or the owner chooses. */
    readonly default_branch: string | null;
    /** Null: platform storage. The binding never changes. */
    readonly storage_bucket_id: string | null;
  }
>;
export type RepositoryDescribed = DomainEvent<
  'RepositoryDescribed',
  { readonly repository_id: string; readonly description: string | null }
>;
export type RepositoryDeleted = DomainEvent<
  'RepositoryDeleted',
  { readonly repository_id: string; readonly name: string }
>;

export type WebhookCreated = DomainEvent<
  'WebhookCreated',
  {
    readonly webhook_id: string;
    /** Vault references (invariant 5): of the URL, which may hold a secret of the receiver's, and of ours. */
    readonly url_ref: string;
    readonly secret_ref: string;
    readonly events: readonly WebhookEventKind[];
    readonly active: boolean;
  }
>;
/** A new receiver has a new secret, and is never shown the signature of an old one. */
export type WebhookUrlChanged = DomainEvent<
  'WebhookUrlChanged',
  { readonly webhook_id: string; readonly url_ref: string; readonly secret_ref: string }
>;
export type WebhookEventsChanged = DomainEvent<
  'WebhookEventsChanged',
  { readonly webhook_id: string; readonly events: readonly WebhookEventKind[] }
>;
export type WebhookActivated = DomainEvent<'WebhookActivated', { readonly webhook_id: string }>;
export type WebhookDeactivated = DomainEvent<'WebhookDeactivated', { readonly webhook_id: string }>;
export type WebhookSecretRotated = DomainEvent<
  'WebhookSecretRotated',
  {
    readonly webhook_id: string;
    readonly secret_ref: string;
    /** Until then the secret before signs too; the one before that no longer does. */
    readonly previous_valid_until: string;
  }
>;
export type WebhookDeleted = DomainEvent<'WebhookDeleted', { readonly webhook_id: string }>;

export type AccountEvent =
  | AccountCreated
  | Abandoned
  | PlanChanged
  | PasswordChanged
  | AccountErased
  | RepositoryCreated
  | RepositoryDescribed
  | RepositoryDeleted
  | WebhookCreated
  | WebhookUrlChanged
  | WebhookEventsChanged
  | WebhookActivated
  | WebhookDeactivated
  | WebhookSecretRotated
  | WebhookDeleted;

export const accountEventKinds: EventKinds<AccountEvent> = {
  AccountCreated: RECORD_V1,
  Abandoned: RECORD_V1,
  PlanChanged: RECORD_V1,
  PasswordChanged: RECORD_V1,
  AccountErased: RECORD_V1,
  RepositoryCreated: RECORD_V1,
  RepositoryDescribed: RECORD_V1,
  RepositoryDeleted: RECORD_V1,
  WebhookCreated: RECORD_V1,
  WebhookUrlChanged: RECORD_V1,
  WebhookEventsChanged: RECORD_V1,
  WebhookActivated: RECORD_V1,
  WebhookDeactivated: RECORD_V1,
  WebhookSecretRotated: RECORD_V1,
  WebhookDeleted: RECORD_V1,
};
