/**
 * Lists what went wrong with storage buckets: failed verifications, from the accounts' streams, and errors of their
 * repositories.
 *
 * Invariants: a row holds what its event says. The rows of a bucket are the newest `BUCKET_ERRORS_LISTED_MAX` of each
 * of the two, however the events are split into batches. The errors of a bucket that is deleted stay until they are too
 * old; readers name the buckets that they may see.
 */
import { BUCKET_ERRORS_LISTED_MAX } from '../../core/kernel/limits.ts';
import { removeAged, runForList } from '../runner/bulk.ts';
import type { Projection, ProjectionTable, Queryable, TableOf } from '../runner/projection.ts';
import { bucketErrorOf, type StoredBucketError } from './row.ts';
import { ERRORS, VERIFICATIONS } from './table.ts';

export const bucketErrorsProjection: Projection = {
  name: 'bucket_errors',
  version: 3,
  categories: ['account', 'bucketErrors'],
  tables: [ERRORS, VERIFICATIONS],
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
  await addTo(
    transaction,
    table,
    ERRORS,
    items.filter(({ operation }) => operation !== 'verify'),
  );
  await addTo(
    transaction,
    table,
    VERIFICATIONS,
    items.filter(({ operation }) => operation === 'verify'),
  );
}

async function addTo(
  transaction: Queryable,
  table: TableOf,
  kind: ProjectionTable,
  items: readonly StoredBucketError[],
): Promise<void> {
  if (items.length === 0) return;
  const name = table(kind.name);
  await runForList(
    transaction,
    items,
    `INSERT INTO ${name} SELECT * FROM json_to_recordset($1) AS r(id uuid, account_id uuid, bucket_id uuid,
        repository_id uuid, operation text, step text, code text, occurred_at text, position bigint, stream text)
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
  await removeAged(
    transaction,
    name,
    kind,
    items.map((item) => item.occurred_at),
  );
}
