/**
 * Lists what went wrong with storage buckets: failed verifications, from the accounts' streams, and errors of their
 * repositories.
 *
 * Must stay true: a row holds what its event says. The rows of a bucket are the newest `BUCKET_ERRORS_LISTED_MAX`,
 * however the events are split into batches. The errors of a bucket that is deleted stay until they are too old; readers
 * name the buckets that they may see.
 */
import { BUCKET_ERRORS_LISTED_MAX } from '../../core/kernel/limits.ts';
import { removeAged, runForList } from '../runner/bulk.ts';
import type { Projection, Queryable, TableOf } from '../runner/projection.ts';
import { bucketErrorOf, type StoredBucketError } from './row.ts';
import { bucketErrorTables } from './table.ts';

export const bucketErrorsProjection: Projection = {
  name: 'bucket_errors',
  version: 2,
  categories: ['account', 'bucketErrors'],
  tables: bucketErrorTables,
  onPoison: 'park',
  open: (table) => ({
    prepare: async (events) => {
      const items = events.map(bucketErrorOf).filter((row) => row !== null);
      return items.length === 0
        ? { lists: [] }
        : { lists: [], before: (transaction) => add(transaction, table, items) };
    },
  }),
};

async function add(transaction: Queryable, table: TableOf, items: readonly StoredBucketError[]): Promise<void> {
  const name = table('bucket_errors');
  await runForList(
    transaction,
    items,
    `INSERT INTO ${name} SELECT * FROM json_to_recordset($1) AS r(id uuid, account_id uuid, bucket_id uuid,
        repository_id uuid, operation text, step text, code text, occurred_at text, position bigint)
      ON CONFLICT DO NOTHING`,
  );
  const buckets = [...new Set(items.map(({ bucket_id }) => bucket_id))];
  await runForList(
    transaction,
    buckets,
    `DELETE FROM ${name} AS e USING (
        SELECT bucket::uuid AS id, (SELECT position FROM ${name} WHERE bucket_id = bucket::uuid
          ORDER BY position DESC OFFSET ${BUCKET_ERRORS_LISTED_MAX - 1} LIMIT 1) AS oldest
        FROM json_array_elements_text($1) AS bucket) AS kept
      WHERE e.bucket_id = kept.id AND e.position < kept.oldest`,
  );
  for (const one of bucketErrorTables)
    await removeAged(
      transaction,
      name,
      one,
      items.map((item) => item.occurred_at),
    );
}
