/** The queries of what an account uses: the sums that REST returns and that quotas are checked against, and each day's. */
import type { AccountId, Timestamp } from '../../core/kernel/ids.ts';
import type { AccountUsage, BucketStorage, DayTraffic } from '../../core/ports/usage.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';

/** Days are `YYYY-MM-DD`, and the parameter is `YYYY-MM`. */
const IN_MONTH = `day >= $2::text || '-01' AND day <= $2::text || '-31'`;

/** Every push of an account with quotas reads it twice: only repositories in buckets are added up here. */
export const usageQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object(
    'storageBytes', coalesce((SELECT size_bytes FROM ${table('usage_stored')} WHERE account_id = $1), 0)
      - (SELECT coalesce(sum(s.size_bytes), 0)
        FROM ${table('usage_repositories')} AS r JOIN ${table('usage_storage')} AS s USING (repository_id)
        WHERE r.account_id = $1 AND r.storage_bucket_id IS NOT NULL AND s.size_bytes <> 0),
    'ingressBytes', coalesce(sum(ingress_bytes), 0),
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
      UNION ALL SELECT day, 0, sent_bytes FROM ${table('usage_minutes')} WHERE account_id = $1 AND ${IN_MONTH}) AS parts
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
