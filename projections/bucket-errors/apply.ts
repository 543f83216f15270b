/**
 * Lists what went wrong with storage buckets: failed verifications, from the accounts' streams, and errors of their
 * repositories.
 *
 * Must stay true: a row holds what its event says. The errors of a bucket that is deleted stay; readers name the
 * buckets that they may see.
 */
import type { Projection, TableOf } from '../runner/projection.ts';
import { bucketErrorOf, type StoredBucketError } from './row.ts';
import { bucketErrorTables } from './table.ts';

export const bucketErrorsProjection: Projection = {
  name: 'bucket_errors',
  version: 1,
  categories: ['account', 'bucketErrors'],
  tables: bucketErrorTables,
  onPoison: 'park',
  open: (table) => ({
    prepare: async (events) => {
      const items = events.map(bucketErrorOf).filter((row) => row !== null);
      return { lists: items.length === 0 ? [] : [insertion(table, items)] };
    },
  }),
};

function insertion(table: TableOf, items: readonly StoredBucketError[]) {
  return {
    items,
    text: `INSERT INTO ${table('bucket_errors')} SELECT * FROM json_to_recordset($1) AS r(id uuid, account_id uuid,
        bucket_id uuid, repository_id uuid, operation text, step text, code text, occurred_at text, position bigint)
      ON CONFLICT DO NOTHING`,
  };
}
