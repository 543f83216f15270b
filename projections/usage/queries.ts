/**
 * The queries of what an account uses: the sums that REST returns and that quotas are checked against, and each day's.
 */
import type { AccountId, Timestamp } from '../../core/kernel/ids.ts';
import type {
  AccountUsage,
  BucketStorage,
  DayTraffic,
  PurgedInBucket,
  Purges,
  PurgesOf,
  RemovedThrough,
  WaitingStorageReader,
} from '../../core/ports/usage.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';
import type { TableOf } from '../runner/projection.ts';

/** Days are `YYYY-MM-DD`, and the parameter is `YYYY-MM`. */
const IN_MONTH = `day >= $2::text || '-01' AND day <= $2::text || '-31'`;

/** Every push of an account with quotas reads it twice: only repositories in buckets are added up here. */
export const usageQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object(
    'storageBytes', coalesce((SELECT size_bytes FROM ${table('usage_stored')} WHERE account_id = $1), 0)
      - (SELECT coalesce(sum(s.size_bytes), 0)
        FROM ${table('usage_repositories')} AS r JOIN ${table('usage_storage')} AS s USING (repository_id)
        WHERE r.account_id = $1 AND r.storage_bucket_id IS NOT NULL AND s.size_bytes <> 0),
    'ingressBytes', coalesce(sum(ingress_bytes), 0) + (SELECT coalesce(sum(received_bytes), 0)
        FROM ${table('usage_minutes')} WHERE account_id = $1 AND ${IN_MONTH}),
    'transferBytes', coalesce(sum(transfer_bytes), 0) + (SELECT coalesce(sum(sent_bytes), 0)
        FROM ${table('usage_minutes')} WHERE account_id = $1 AND ${IN_MONTH}))
    FROM ${table('usage_traffic')} WHERE account_id = $1 AND ${IN_MONTH}`,
};

export async function readUsage(reader: LiveReader, account: AccountId, now: Timestamp): Promise<AccountUsage> {
  const { value } = await reader.read(usageQuery, [account, monthOf(now)], () => ({ account }));
  return value as AccountUsage;
}

/** Apart from the sums, which every push reads. */
const deletedQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('bytes', coalesce(sum(s.size_bytes), 0))
    FROM ${table('usage_storage')} AS s JOIN ${table('usage_repositories')} AS r USING (repository_id)
    WHERE s.account_id = $1 AND s.size_bytes <> 0 AND r.deleted AND r.storage_bucket_id IS NULL`,
};

export async function readDeletedStorageBytes(reader: LiveReader, account: AccountId): Promise<number> {
  const { value } = await reader.read(deletedQuery, [account], () => ({ account }));
  return (value as { readonly bytes: number }).bytes;
}

/**
 * Layers in platform storage. `$2` and `$3` are how far replaced and purged layers have been removed; `let_go_at` is
 * null for those that a purge would let go.
 */
const held = (table: TableOf): string => `
    SELECT w.layer_id, w.size_bytes, w.by_purge, NULL AS let_go_at
    FROM ${table('usage_waiting')} AS w JOIN ${table('usage_repositories')} AS r USING (repository_id)
    WHERE w.account_id = $1 AND r.storage_bucket_id IS NULL AND w.position > $2::bigint
    UNION ALL
    SELECT l.layer_id, l.size_bytes, l.by_purge, CASE WHEN l.leaves_position IS NOT NULL THEN l.leaves_at END
    FROM ${table('usage_leaving')} AS l JOIN ${table('usage_repositories')} AS r USING (repository_id)
    WHERE l.account_id = $1 AND r.storage_bucket_id IS NULL AND coalesce(l.position > $2::bigint, true)
      AND coalesce(l.leaves_position > $3::bigint, true)`;

const waitingQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('bytes', coalesce(sum(size_bytes), 0)) FROM (${held(table)}) AS held`,
};

export async function readWaitingStorageBytes(
  reader: LiveReader,
  account: AccountId,
  { replaced, purged }: RemovedThrough,
): Promise<number> {
  const { value } = await reader.read(waitingQuery, [account, String(replaced), String(purged)], () => ({ account }));
  return (value as { readonly bytes: number }).bytes;
}

/** The newest purges may stay, as many as the quota (`$4`) has room for; what was let go before must leave. */
const purgesQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object(
    'letGoUntil', (SELECT max(let_go_at) FROM (
        SELECT let_go_at, sum(size_bytes) OVER (ORDER BY let_go_at DESC, layer_id) AS since
        FROM (${held(table)}) AS held WHERE by_purge AND let_go_at IS NOT NULL) AS purged WHERE since > $4::bigint),
    'rewrittenAt', greatest(
      (SELECT max(taken_at) FROM ${table('usage_waiting')} WHERE repository_id = $5 AND by_purge),
      (SELECT max(taken_at) FROM ${table('usage_leaving')} WHERE repository_id = $5 AND by_purge AND position IS NOT NULL)))`,
};

export async function readPurgesOf(
  reader: LiveReader,
  { account, repository, removed: { replaced, purged }, quota }: PurgesOf,
): Promise<Purges> {
  const values = [account, String(replaced), String(purged), quota, repository];
  const { value } = await reader.read(purgesQuery, values, () => ({ account }));
  return value as Purges;
}

/** Layers in a bucket that a purge let go. `$3` and `$4` are how far replaced and purged layers have been removed. */
const purgedQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object(
    'sizeBytes', coalesce(sum(l.size_bytes), 0), 'letGoUntil', max(l.leaves_at))
    FROM ${table('usage_leaving')} AS l JOIN ${table('usage_repositories')} AS r USING (repository_id)
    WHERE l.account_id = $1 AND r.storage_bucket_id = $2::uuid AND coalesce(l.position > $3::bigint, true)
      AND l.leaves_position > $4::bigint`,
};

export async function readPurgedInBucket(
  reader: LiveReader,
  { account, bucket, removed: { replaced, purged } }: Parameters<WaitingStorageReader['purgedInBucket']>[0],
): Promise<PurgedInBucket> {
  const values = [account, bucket, String(replaced), String(purged)];
  const { value } = await reader.read(purgedQuery, values, () => ({ account }));
  return value as PurgedInBucket;
}

/** A deleted repository is not counted, but its layers are as long as they are in the bucket. */
const bucketsQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(stored), '[]') FROM (
    SELECT r.storage_bucket_id AS "storageBucketId", count(*) FILTER (WHERE NOT r.deleted) AS repositories,
      coalesce(sum(s.size_bytes), 0) AS "storageBytes"
    FROM ${table('usage_repositories')} AS r LEFT JOIN ${table('usage_storage')} AS s USING (repository_id)
    WHERE r.account_id = $1 AND r.storage_bucket_id IS NOT NULL AND (s.size_bytes <> 0 OR NOT r.deleted)
    GROUP BY r.storage_bucket_id) AS stored`,
};

export async function readBucketStorage(reader: LiveReader, account: AccountId): Promise<readonly BucketStorage[]> {
  const { value } = await reader.read(bucketsQuery, [account], () => ({ account }));
  return value as readonly BucketStorage[];
}

const daysQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(traffic ORDER BY day), '[]') FROM (
    SELECT day, sum(ingress_bytes) AS "ingressBytes", sum(transfer_bytes) AS "transferBytes" FROM (
      SELECT day, ingress_bytes, transfer_bytes FROM ${table('usage_traffic')} WHERE account_id = $1 AND ${IN_MONTH}
      UNION ALL SELECT day, received_bytes, sent_bytes FROM ${table('usage_minutes')}
        WHERE account_id = $1 AND ${IN_MONTH}) AS parts
    GROUP BY day) AS traffic`,
};

export async function readDailyTraffic(
  reader: LiveReader,
  account: AccountId,
  now: Timestamp,
): Promise<readonly DayTraffic[]> {
  const { value } = await reader.read(daysQuery, [account, monthOf(now)], () => ({ account }));
  return value as readonly DayTraffic[];
}

function monthOf(instant: Timestamp): string {
  return instant.slice(0, 7);
}
