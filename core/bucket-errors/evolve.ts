/** Folds the errors of a bucket on one day into what was recorded when, which bounds what is recorded next. */
import type { Decider } from '../kernel/decider.ts';
import type { StorageBucketId, Timestamp } from '../kernel/ids.ts';
import { type BucketErrorRecorded, bucketErrorEventKinds } from './events.ts';

export interface BucketErrorsOfDay {
  /** When each kind of error was last recorded, by `errorKey`. */
  readonly lastAt: ReadonlyMap<string, Timestamp>;
  readonly count: number;
}

/** Errors of one kind are recorded once in `BUCKET_ERROR_INTERVAL_MS`. */
export function errorKey({ repository_id, operation, code }: BucketErrorRecorded['data']): string {
  return `${repository_id ?? ''} ${operation} ${code}`;
}

export const bucketErrors: Decider<BucketErrorsOfDay, BucketErrorRecorded> = {
  category: 'bucketErrors',
  kinds: bucketErrorEventKinds,
  initial: { lastAt: new Map<string, Timestamp>(), count: 0 },
  evolve: ({ lastAt, count }, { data }, at) => ({
    lastAt: new Map(lastAt).set(errorKey(data), at),
    count: count + 1,
  }),
  snapshots: null,
  sizeBytes: ({ lastAt }) => 200 + 200 * lastAt.size,
};

/** Returns the id of the stream of a bucket's errors on a day (UTC). */
export function bucketErrorsOn(bucket: StorageBucketId, at: Timestamp): string {
  return `${bucket}-${at.slice(0, 10).replaceAll('-', '')}`;
}
