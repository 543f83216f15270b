/**
 * Errors of a storage bucket while repositories use it, on `bucketErrors-<bucket>-<day>`. A failed verification is not
 * among them: the account's stream has it.
 *
 * Invariants: the events are operational, because a dead bucket can cause any number of them. Whole streams are
 * pruned after retention, which is why each stream ends with its day. They hold codes, never what a provider said.
 */
import type { BucketFaultCode, BucketOperation } from '../kernel/bucket-fault.ts';
import { type DomainEvent, type EventKinds, OPERATIONAL_V1 } from '../kernel/decider.ts';

export type BucketErrorRecorded = DomainEvent<
  'BucketErrorRecorded',
  {
    readonly bucket_id: string;
    readonly repository_id: string | null;
    readonly operation: BucketOperation;
    readonly code: BucketFaultCode;
  }
>;

export const bucketErrorEventKinds: EventKinds<BucketErrorRecorded> = { BucketErrorRecorded: OPERATIONAL_V1 };
