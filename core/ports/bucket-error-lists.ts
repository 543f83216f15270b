/** Lists of what went wrong with storage buckets, read from a read model. */
import type { BucketFaultCode, BucketOperation, BucketStep } from '../kernel/bucket-fault.ts';
import type { AccountId, EventId, RepositoryId, StorageBucketId, Timestamp } from '../kernel/ids.ts';
import type { Page, PageOf } from '../kernel/page.ts';

export interface BucketErrorRow {
  readonly id: EventId;
  readonly bucket: StorageBucketId;
  /** Null if the error concerns no single repository, as a failed verification does. */
  readonly repository: RepositoryId | null;
  readonly operation: 'verify' | BucketOperation;
  /** The step of a verification; null for the other operations. */
  readonly step: BucketStep | null;
  readonly code: BucketFaultCode;
  readonly occurredAt: Timestamp;
}

export interface WantedBucketErrors {
  readonly account: AccountId;
  readonly buckets: readonly StorageBucketId[];
  /** Errors of other repositories are left out; null: of none. Those of no repository are always listed. */
  readonly repositories: readonly RepositoryId[] | null;
}

export interface BucketErrorLists {
  /** Returns a page of the errors, newest first. */
  bucketErrors(wanted: WantedBucketErrors, page: Page): Promise<PageOf<BucketErrorRow>>;
}
