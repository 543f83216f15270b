/**
 * Decides which errors of a bucket are recorded.
 *
 * Invariants: a bucket that fails every request of a busy repository adds a bounded number of events a day.
 */
import { accept, type Decision } from '../kernel/decider.ts';
import { plusMs, type Timestamp } from '../kernel/ids.ts';
import { BUCKET_ERROR_INTERVAL_MS, BUCKET_ERRORS_OF_DAY_MAX } from '../kernel/limits.ts';
import type { BucketErrorRecorded } from './events.ts';
import { type BucketErrorsOfDay, errorKey } from './evolve.ts';

export function decideBucketError(
  { lastAt, count }: BucketErrorsOfDay,
  error: BucketErrorRecorded['data'],
  now: Timestamp,
): Decision<BucketErrorRecorded> {
  if (count >= BUCKET_ERRORS_OF_DAY_MAX) return accept<BucketErrorRecorded>();
  const last = lastAt.get(errorKey(error));
  if (last !== undefined && now < plusMs(last, BUCKET_ERROR_INTERVAL_MS)) return accept<BucketErrorRecorded>();
  return accept<BucketErrorRecorded>({ type: 'BucketErrorRecorded', data: error });
}
