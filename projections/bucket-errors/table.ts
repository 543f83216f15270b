/**
 * The tables of what went wrong with storage buckets: one row for each event, the newest of each bucket.
 *
 * Invariants: errors, which are pruned from the log, and failed verifications, which are not, have a table each. Their
 * number and age would otherwise decide which verifications are listed, and a rebuild would not find them.
 */
import type { ProjectionTable } from '../runner/projection.ts';

/** How much older than the newest error of all buckets a listed error may be. */
export const BUCKET_ERROR_LISTED_MS = 30 * 24 * 60 * 60_000;

/** `repository_id` and `step` are null for what has none. */
function tableOf(name: string): ProjectionTable {
  return {
    name,
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
        position bigint NOT NULL,
        stream text NOT NULL)`,
      `CREATE INDEX ON ${table} (bucket_id, position)`,
      `CREATE INDEX ON ${table} (occurred_at)`,
    ],
  };
}

export const ERRORS = tableOf('bucket_errors');
export const VERIFICATIONS = tableOf('bucket_verifications');
