/**
 * Events of an account, on `account-<id>`. This file has those of the account itself; each facet's folder has its own.
 *
 * Invariants: every rule that counts or compares within an account is decided on this one stream.
 */
import { type DomainEvent, type EventKinds, NEW_RECORD_V1, RECORD_V1 } from '../kernel/decider.ts';
import { type BucketEvent, bucketEventKinds } from './buckets/events.ts';
import { type MfaEvent, mfaEventKinds } from './mfa/events.ts';
import type { Plan } from './plans.ts';
import { type OwnedRepositoryEvent, ownedRepositoryEventKinds } from './repositories/events.ts';
import { type TrustRuleEvent, trustRuleEventKinds } from './trust-rules/events.ts';
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
/** Ends every session that began before it. */
export type PasswordChanged = DomainEvent<'PasswordChanged', { readonly password_hash_ref: string }>;

export type EmailChanged = DomainEvent<
  'EmailChanged',
  {
    /** A vault reference to the new address. */
    readonly email_ref: string;
    /** The name of the claim of the address before, which is to be released; null if the new address has the same. */
    readonly previous_claim: string | null;
  }
>;

/**
 * The account is deleted for everybody, permanently. A `RepositoryDeleted` follows for each of its repositories. Its
 * data key is destroyed, so nobody can read the vault records that its events refer to.
 */
export type AccountErased = DomainEvent<'AccountErased', Record<never, never>>;

/**
 * The owner deleted the account. Nobody can use it, but its owner may undo the deletion until `erase_at`. Ends every
 * session that began before it.
 */
export type AccountClosed = DomainEvent<
  'AccountClosed',
  {
    /** RFC 3339. From this time on the account is to be erased. */
    readonly erase_at: string;
  }
>;
/** The owner undid the deletion: the account is as it was before `AccountClosed`. */
export type AccountReopened = DomainEvent<'AccountReopened', Record<never, never>>;

/**
 * The operator accepts that the log lost its end: it does not continue a checkpoint that was signed of it, which an
 * auditor may hold.
 */
export type LogTailLost = DomainEvent<
  'LogTailLost',
  {
    /** How many entries the lost checkpoint signed. */
    readonly size: number;
    /** Its root, in base64 as in a checkpoint. */
    readonly root: string;
    /** The operator's words. */
    readonly reason: string;
  }
>;

/**
 * An operator made a repository of a manifest that names another account, and that account is here. It is in both logs:
 * that of the account which got the repository, after `RepositoryCreated`, and that of the account which the manifest
 * names. Nothing is in the repository yet. If its push is refused, `RepositoryDeleted` follows in the first log.
 */
export type RepositoryRebuilt = DomainEvent<
  'RepositoryRebuilt',
  {
    readonly repository_id: string;
    /** The repository that the manifest describes. It may be one that only a lost service had. */
    readonly source_repository_id: string;
  }
>;

/**
 * A rotation of the master key wrapped the account's data key again. The account's next signing records it, and the
 * actor is the command.
 */
export type MasterKeyRotated = DomainEvent<
  'MasterKeyRotated',
  {
    /** The name of the new master key, which says nothing of the key. */
    readonly key_id: string;
  }
>;

/** The key that signs the log's checkpoints from here on. The account's next signing records it, by the command. */
export type LogKeyEndorsed = DomainEvent<
  'LogKeyEndorsed',
  {
    /** A line of the published list, as `previous` is. */
    readonly key: string;
    /** The key that signed before. */
    readonly previous: string;
    /** The previous key's, in base64, of the canonical JSON of `{key, previous}`; null where a key was revoked. */
    readonly signature: string | null;
  }
>;

/** Events of the account itself. */
export type AccountOwnEvent =
  | AccountCreated
  | Abandoned
  | PlanChanged
  | PasswordChanged
  | EmailChanged
  | AccountClosed
  | AccountReopened
  | AccountErased
  | LogKeyEndorsed
  | LogTailLost
  | MasterKeyRotated
  | RepositoryRebuilt;

const accountOwnEventKinds: EventKinds<AccountOwnEvent> = {
  AccountCreated: RECORD_V1,
  Abandoned: RECORD_V1,
  PlanChanged: RECORD_V1,
  PasswordChanged: RECORD_V1,
  EmailChanged: RECORD_V1,
  AccountClosed: RECORD_V1,
  AccountReopened: RECORD_V1,
  AccountErased: RECORD_V1,
  LogKeyEndorsed: NEW_RECORD_V1,
  LogTailLost: RECORD_V1,
  MasterKeyRotated: NEW_RECORD_V1,
  RepositoryRebuilt: RECORD_V1,
};

export type AccountEvent =
  | AccountOwnEvent
  | OwnedRepositoryEvent
  | WebhookEvent
  | MfaEvent
  | BucketEvent
  | TrustRuleEvent;

export const accountEventKinds: EventKinds<AccountEvent> = {
  ...accountOwnEventKinds,
  ...ownedRepositoryEventKinds,
  ...webhookEventKinds,
  ...mfaEventKinds,
  ...bucketEventKinds,
  ...trustRuleEventKinds,
};
