/**
 * Every expected refusal of the service: the catalogue of stable codes.
 *
 * Invariants: a refusal is a value that a use case returns; a thrown error is a bug or an outage. One table in
 * apps/api holds the message and HTTP status of each refusal, and must cover this union exactly.
 */
import type { Grant, Scope } from './grants.ts';
import type { EventId, ObjectId, RepositoryId } from './ids.ts';
import type { TargetFault } from './target-fault.ts';

/** A setting of a storage bucket, by its name on the wire. */
export type BucketSetting =
  | 'auth_mode'
  | 'bucket_name'
  | 'key_prefix'
  | 'role_arn'
  | 'region'
  | 'endpoint_url'
  | 'access_key_id'
  | 'secret_access_key';

/** What is wrong with one: `not-offered` if the provider does not take it. */
export type BucketSettingFault = 'missing' | 'malformed' | 'not-offered';

/** Repositories that depend on something, as far as their caller may know of them. */
export interface DependentNames {
  /** At most `DEPENDENT_NAMES_MAX`. */
  readonly names: readonly string[];
  /** Whether there are others. */
  readonly more: boolean;
}

/** Names of repositories that one refusal tells; it only says that there are others. */
export const DEPENDENT_NAMES_MAX = 10;

/** Why an account cannot reach what a bucket of it held: the bucket is gone, or is at another place. */
export type LostPlace = 'bucket-deleted' | 'bucket-moved';

export type ComparedSide = 'base' | 'head';

export type Refusal =
  | { readonly code: 'username-invalid'; readonly reason: string }
  | { readonly code: 'username-reserved'; readonly username: string }
  | { readonly code: 'username-taken'; readonly username: string }
  | { readonly code: 'email-invalid'; readonly reason: string }
  | { readonly code: 'email-taken' }
  | { readonly code: 'password-length' }
  | { readonly code: 'password-wrong' }
  | { readonly code: 'sign-up-closed' }
  /** The account is unknown, cannot be used, or has another password: the refusal does not say which. */
  | { readonly code: 'sign-in-failed' }
  | { readonly code: 'too-many-attempts'; readonly waitSeconds: number }
  /** The plan's changes of this month are used up for access tokens. */
  | { readonly code: 'changes-quota-reached'; readonly waitSeconds: number }
  /** A program of an older version may run, which does not know the event that this would append. */
  | { readonly code: 'upgrade-not-finished' }
  | { readonly code: 'session-no-longer-valid' }
  | { readonly code: 'account-not-found' }
  /** The account's log has no tree of a size that was asked for, or the tree has no such entry. */
  | { readonly code: 'no-such-tree' }
  /** The account's log has no such event: no event has the id, it is another account's, or it is operational. */
  | { readonly code: 'entry-not-found' }
  | { readonly code: 'token-not-found' }
  | { readonly code: 'token-limit-reached' }
  | { readonly code: 'token-repositories-reached' }
  | { readonly code: 'token-no-longer-valid' }
  | { readonly code: 'token-name-length' }
  | { readonly code: 'token-grants-empty' }
  | { readonly code: 'token-scope-needs-repositories' }
  | { readonly code: 'token-scope-takes-no-repositories' }
  | { readonly code: 'token-unknown-repositories'; readonly ids: readonly RepositoryId[] }
  | { readonly code: 'token-expiry-not-in-future' }
  | { readonly code: 'mfa-token-not-found' }
  | { readonly code: 'mfa-token-limit-reached' }
  | { readonly code: 'mfa-token-name-length' }
  | { readonly code: 'mfa-token-active' }
  | { readonly code: 'mfa-enrolment-over' }
  | { readonly code: 'mfa-code-wrong' }
  | { readonly code: 'mfa-code-used' }
  | { readonly code: 'mfa-passkey-pending' }
  | { readonly code: 'mfa-passkey-known' }
  | { readonly code: 'mfa-passkey-refused' }
  | { readonly code: 'mfa-passkey-challenge-over' }
  | { readonly code: 'mfa-passkey-counter-regressed' }
  | { readonly code: 'device-hostname-length' }
  | { readonly code: 'device-session-not-found' }
  | { readonly code: 'device-session-expired' }
  | { readonly code: 'device-session-decided' }
  | { readonly code: 'device-login-pending' }
  | { readonly code: 'device-login-denied' }
  | { readonly code: 'device-login-claimed' }
  | { readonly code: 'repository-name-invalid'; readonly reason: string }
  | { readonly code: 'repository-name-taken'; readonly name: string }
  | { readonly code: 'repository-quota-reached'; readonly quota: number }
  | { readonly code: 'repository-not-found' }
  | { readonly code: 'repository-description-length' }
  /** The repository's stream has no such event. */
  | { readonly code: 'event-not-found' }
  | { readonly code: 'repository-not-there-then' }
  /** It was not deleted, or was undeleted before the request was done. */
  | { readonly code: 'repository-not-deleted' }
  /** It is deleted, and its bucket is gone or moved, so nothing brings it back. */
  | { readonly code: 'repository-place-lost'; readonly lost: LostPlace }
  /** A purge reads and writes the whole repository, so its size is bounded. */
  | { readonly code: 'repository-too-large-to-purge' }
  /** By a purge, of which a repository has one within `PURGE_REWRITING_INTERVAL_MS`. */
  | { readonly code: 'repository-rewritten-lately'; readonly waitSeconds: number }
  /** What purges took out and storage still holds is beyond the account's quota. */
  | { readonly code: 'waiting-storage-full'; readonly quota: number; readonly waitSeconds: number }
  /** Another change of the refs was faster. */
  | { readonly code: 'refs-moved-meanwhile' }
  /** Others moved refs whenever a change of them was decided. */
  | { readonly code: 'refs-moved-too-often'; readonly waitSeconds: number }
  /** Another request with this idempotency key is under way, or has just been. */
  | { readonly code: 'key-in-use' }
  /** A request that asks for something else has used this idempotency key. */
  | { readonly code: 'key-used-otherwise' }
  /** An older version runs beside this one, for which events are written without what keys need. */
  | { readonly code: 'keys-during-upgrade'; readonly waitSeconds: number }
  /** A tag that refs are to lead to is larger than a push may bring, or their moves take too long to compare. */
  | { readonly code: 'pack-object-too-large'; readonly detail: string }
  | { readonly code: 'pack-too-costly'; readonly detail: string }
  /** What a commit brings is larger than a push may be. */
  | { readonly code: 'pack-too-large' }
  /** Webhooks are still to be notified of a push whose objects a purge may remove. */
  | { readonly code: 'webhooks-not-notified' }
  /** The ref cannot exist beside another one that is not restored. */
  | { readonly code: 'restored-ref-collides'; readonly ref: string }
  | { readonly code: 'restored-refs-too-many' }
  /** Names the event with which objects left storage; null if the log does not tell. */
  | { readonly code: 'objects-expired'; readonly event: EventId | null }
  | { readonly code: 'branch-name-invalid'; readonly reason: string }
  | { readonly code: 'repository-without-commits' }
  /** Names the first branches that exist, without `refs/heads/`, and counts the others. */
  | {
      readonly code: 'default-branch-missing';
      readonly branch: string;
      readonly branches: readonly string[];
      readonly others: number;
    }
  /** The refusal of a comparison says which of the two is not there. */
  | { readonly code: 'ref-not-found'; readonly side?: ComparedSide }
  /** Several commits begin with these hex digits; names the first of them, and says whether there may be others. */
  | {
      readonly code: 'short-id-ambiguous';
      readonly digits: string;
      readonly commits: readonly ObjectId[];
      readonly more: boolean;
    }
  /** A tag may lead to a folder or a file. */
  | { readonly code: 'ref-not-a-commit'; readonly type: 'tree' | 'blob' }
  | { readonly code: 'ref-not-a-tree' }
  /** A merge, or a commit that changed no file. */
  | { readonly code: 'commit-without-patch' }
  /** The commits between two took too long to find. */
  | { readonly code: 'comparison-too-costly' }
  /** Asked for the past, for a moment that has not come. */
  | { readonly code: 'moment-in-future' }
  /** There is no object of this id and type, or no ref reaches it. */
  | { readonly code: 'object-not-found' }
  /** A recursive listing of a tree goes on too far, or too deep. */
  | { readonly code: 'tree-too-large' }
  /** A ref has too many files, or too long paths, to be listed or searched. */
  | { readonly code: 'files-too-many' }
  /** What was searched for is no expression; `reason` is what PCRE says. */
  | { readonly code: 'regex-invalid'; readonly reason: string }
  /** The service's git knows no expressions of PCRE. */
  | { readonly code: 'regex-unavailable' }
  | { readonly code: 'path-not-found' }
  | { readonly code: 'path-not-a-file' }
  | { readonly code: 'file-too-large' }
  /** The names of the entries of one page are too long together. */
  | { readonly code: 'folder-names-too-long' }
  /** The paths on one page of files, matches or lines are too long together. */
  | { readonly code: 'page-paths-too-long' }
  /** The account has as many archives under way as it may. */
  | { readonly code: 'too-many-archives'; readonly waitSeconds: number }
  /** Other accounts use all turns of this node. */
  | { readonly code: 'archives-busy'; readonly waitSeconds: number }
  | { readonly code: 'webhook-not-found' }
  | { readonly code: 'webhook-delivery-not-found' }
  | { readonly code: 'webhook-redelivery-limit-reached' }
  | { readonly code: 'webhook-deliveries-wait' }
  | { readonly code: 'webhook-limit-reached' }
  | { readonly code: 'webhook-events-empty' }
  | { readonly code: 'webhook-url-refused'; readonly fault: TargetFault }
  | { readonly code: 'byo-storage-requires-plan' }
  | { readonly code: 'trust-rule-not-found' }
  | { readonly code: 'trust-rule-limit-reached' }
  | { readonly code: 'trust-rule-name-length' }
  | { readonly code: 'trust-rule-issuer-refused'; readonly fault: TargetFault }
  | { readonly code: 'trust-rule-issuer-form' }
  | { readonly code: 'trust-rule-subject-form' }
  | { readonly code: 'trust-rule-claims-form' }
  /** Names the grant, or the scope, that the rule would carry and its maker lacks. */
  | { readonly code: 'trust-rule-exceeds-maker'; readonly lacks: Grant | Scope }
  /** For the caller of an exchange, who learns nothing more. */
  | { readonly code: 'oidc-exchange-failed' }
  | { readonly code: 'storage-bucket-not-found' }
  | { readonly code: 'storage-bucket-not-verified' }
  | { readonly code: 'storage-bucket-limit-reached' }
  | { readonly code: 'storage-bucket-name-length' }
  | { readonly code: 'storage-bucket-name-taken' }
  | { readonly code: 'storage-bucket-setting'; readonly setting: BucketSetting; readonly fault: BucketSettingFault }
  | { readonly code: 'storage-bucket-endpoint-refused'; readonly fault: TargetFault }
  /** `deleted` names those that can be undeleted; absent if there are none. */
  | {
      readonly code: 'storage-bucket-place-fixed';
      readonly repositories: DependentNames;
      readonly deleted?: DependentNames;
    }
  | { readonly code: 'storage-bucket-in-use'; readonly repositories: DependentNames }
  /** Purges have still to remove layers from its place. `sizeBytes` is null for who may use some repositories only. */
  | { readonly code: 'storage-bucket-purged'; readonly sizeBytes: number | null; readonly waitSeconds: number }
  /** The caller may use some repositories only, and the change concerns others too. */
  | { readonly code: 'storage-bucket-needs-all-repositories' }
  /** The settings changed while they were read or verified. */
  | { readonly code: 'storage-bucket-changed' }
  | {
      readonly code: 'storage-bucket-verification-failed';
      /** A step of `BucketStep` (core/ports/buckets.ts). */
      readonly step: string;
      readonly message: string;
      /** The address of this service if the bucket's cloud cannot reach it, which may be the reason; else null. */
      readonly issuer: string | null;
    }
  /** Exports of accounts' logs that are under way. */
  | { readonly code: 'log-export-limit-reached' }
  | { readonly code: 'storage-quota-reached' }
  | { readonly code: 'ingress-quota-reached' }
  | { readonly code: 'transfer-quota-reached' };

export type RefusalCode = Refusal['code'];
