/** The in-memory counterpart of the read model of buckets' errors: reads the whole log each time. */
import { categoryOf, LOG_START } from '../../../core/kernel/envelope.ts';
import { timestamp, uuid } from '../../../core/kernel/ids.ts';
import { BUCKET_ERRORS_LISTED_MAX } from '../../../core/kernel/limits.ts';
import type { BucketErrorLists } from '../../../core/ports/bucket-error-lists.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { bucketErrorOf, type StoredBucketError } from '../../../projections/bucket-errors/row.ts';

/** Returns whether no more than the listed errors of the same bucket follow; verifications are counted apart. */
function isListed(one: StoredBucketError, index: number, all: readonly StoredBucketError[]): boolean {
  const isLike = (later: StoredBucketError): boolean =>
    later.bucket_id === one.bucket_id && (later.operation === 'verify') === (one.operation === 'verify');
  return all.slice(index + 1).filter(isLike).length < BUCKET_ERRORS_LISTED_MAX;
}

export function createMemoryBucketErrors(events: Pick<EventStore, 'readAll'>): BucketErrorLists {
  return {
    async bucketErrors({ account, buckets, repositories }, { offset, limit }) {
      const all = await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER);
      const concerned = all.filter(({ stream }) => ['account', 'bucketErrors'].includes(categoryOf(stream)));
      const items = concerned
        .map(bucketErrorOf)
        .filter((row) => row !== null)
        .filter(isListed)
        .filter((row) => row.account_id === account && buckets.some((id) => id === row.bucket_id))
        .filter(
          ({ repository_id }) =>
            repositories === null || repository_id === null || repositories.some((id) => id === repository_id),
        )
        .toReversed()
        .map(({ id, bucket_id, repository_id, operation, step, code, occurred_at }) => ({
          id: uuid<(typeof all)[number]['id']>(id),
          bucket: uuid<(typeof buckets)[number]>(bucket_id),
          repository: repository_id === null ? null : uuid<NonNullable<typeof repositories>[number]>(repository_id),
          ...{ operation, step, code },
          occurredAt: timestamp(occurred_at),
        }));
      return { items: items.slice(offset, offset + limit), total: items.length };
    },
  };
}
