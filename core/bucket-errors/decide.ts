/**
 * Decides which errors of a bucket are recorded.
 *
 * Invariants: a bucket that fails every request of a busy repository adds a bounded number of events a day.
 */
import { accept, type Decision } from '../kernel/decider.ts';
import { plusMs, type Timestamp } from '../kernel/ids.ts';
import type { BucketErrorRecorded } from './events.ts';
import { type BucketErrorsOfDay, errorKey } from './evolve.ts';

/** How long an error of a bucket is not recorded again for the same repository, operation and code. */
export const BUCKET_ERROR_INTERVAL_MS = 15 * 60_000;
/** Errors of one bucket that are recorded on one day. */
export const BUCKET_ERRORS_OF_DAY_MAX = 100;

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
