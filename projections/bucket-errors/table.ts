/** The table of what went wrong with storage buckets: one row for each event, the newest of each bucket. */
import { BUCKET_ERROR_LISTED_MS } from '../../core/kernel/limits.ts';
import type { ProjectionTable } from '../runner/projection.ts';

/** `repository_id` and `step` are null for what has none. */
export const bucketErrorTables: readonly ProjectionTable[] = [
  {
    name: 'bucket_errors',
    key: ['id'],
    compare: 'exact',
    ages: { column: 'occurred_at', keptMs: BUCKET_ERROR_LISTED_MS },
    create: (table) => [
      `CREATE TABLE ${table} (
        id uuid PRIMARY KEY,
        account_id uuid NOT NULL,
        bucket_id uuid NOT NULL,
        repository_id uuid,
        operation text NOT NULL,
        step text,
        code text NOT NULL,
        occurred_at text COLLATE "C" NOT NULL,
        position bigint NOT NULL)`,
      `CREATE INDEX ON ${table} (bucket_id, position)`,
      `CREATE INDEX ON ${table} (occurred_at)`,
    ],
  },
];
