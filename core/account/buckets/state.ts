/** The state of an account's storage buckets, folded from the account's stream. */
import type { BucketFaultCode, BucketStep } from '../../kernel/bucket-fault.ts';
import type { StorageBucketId, Timestamp } from '../../kernel/ids.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { BucketAuthMode, BucketProvider } from './settings.ts';

export type BucketStatus = 'PENDING_VERIFICATION' | 'VERIFIED' | 'FAILED';

/** How the last verification of the current settings failed. */
export interface BucketFailure {
  readonly step: BucketStep;
  readonly code: BucketFaultCode;
  readonly at: Timestamp;
}

export interface StorageBucket {
  readonly id: StorageBucketId;
  /** The account's own name for it; unique by `bucketNameKey`. */
  readonly name: string;
  readonly provider: BucketProvider;
  readonly authMode: BucketAuthMode;
  /** Vault references (docs/architecture.md, invariant 5): the name of the bucket in its cloud is among the place. */
  readonly placeRef: VaultRef;
  readonly accessRef: VaultRef;
  readonly status: BucketStatus;
  /** When a verification last succeeded, also one of settings that changed since. */
  readonly lastValidatedAt: Timestamp | null;
  /** Null unless the status is `FAILED`. */
  readonly lastFailure: BucketFailure | null;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
}

export interface AccountBuckets {
  /** In the order of their creation; at most `STORAGE_BUCKETS_MAX`. */
  readonly storageBuckets: ReadonlyMap<StorageBucketId, StorageBucket>;
  /** The bucket of repositories whose creator names none; null: platform storage. */
  readonly defaultBucketId: StorageBucketId | null;
}
