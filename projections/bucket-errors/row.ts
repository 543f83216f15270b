/** The row of an event that says what went wrong with a storage bucket. */
import { accountEventKinds } from '../../core/account/events.ts';
import { bucketErrorEventKinds } from '../../core/bucket-errors/events.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import type { BucketErrorRow } from '../../core/ports/bucket-error-lists.ts';

export interface StoredBucketError {
  readonly id: string;
  readonly account_id: string | null;
  readonly bucket_id: string;
  readonly repository_id: string | null;
  readonly operation: BucketErrorRow['operation'];
  readonly step: BucketErrorRow['step'];
  readonly code: BucketErrorRow['code'];
  readonly occurred_at: string;
  readonly position: string;
  readonly stream: string;
}

/** Returns null for every other event. */
export function bucketErrorOf(recorded: RecordedEvent): StoredBucketError | null {
  const facts = factsOf(recorded);
  if (facts === null) return null;
  const { id, accountId, occurredAt, position, stream } = recorded;
  return { id, account_id: accountId, ...facts, occurred_at: occurredAt, position: String(position), stream };
}

function factsOf(
  recorded: RecordedEvent,
): Omit<StoredBucketError, 'id' | 'account_id' | 'occurred_at' | 'position' | 'stream'> | null {
  if (categoryOf(recorded.stream) === 'bucketErrors') {
    return { ...readEvent(bucketErrorEventKinds, recorded).data, step: null };
  }
  const event = readEvent(accountEventKinds, recorded);
  if (event.type !== 'StorageBucketVerificationFailed') return null;
  return { ...event.data, repository_id: null, operation: 'verify' };
}
