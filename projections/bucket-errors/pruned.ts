/** The rows of errors of buckets, which go when their streams are pruned from the log. */
import type { PrunableRows } from '../runner/pruned-rows.ts';
import { bucketErrorsProjection } from './apply.ts';

export const prunableBucketErrors: PrunableRows = {
  model: bucketErrorsProjection,
  table: 'bucket_errors',
  firstKey: '00000000-0000-0000-0000-000000000000',
  page: (table, limit) => `SELECT id AS key, stream FROM ${table}
    WHERE id > $1::uuid AND occurred_at < $2 ORDER BY id LIMIT ${limit}`,
  remove: (table) => `DELETE FROM ${table} WHERE id = ANY ($1::uuid[])`,
};
