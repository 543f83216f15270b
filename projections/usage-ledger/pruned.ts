/** The entries of reads by the minute, which go when their streams are pruned from the log. */
import type { PrunableRows } from '../runner/pruned-rows.ts';
import { usageLedgerProjection } from './apply.ts';

/** A key is a day and a stream. The query steps from one to the next, and reads one row of each. */
export const prunableMinutes: PrunableRows = {
  model: usageLedgerProjection,
  table: 'ledger_entries',
  firstKey: ' ',
  page: (table, limit) => `WITH RECURSIVE place AS (
      (SELECT appended_on, stream FROM ${table}
        WHERE stream IS NOT NULL AND (appended_on, stream) > (split_part($1, ' ', 1), split_part($1, ' ', 2))
          AND appended_on < left($2, 10)
        ORDER BY appended_on, stream LIMIT 1)
      UNION ALL
      SELECT next.appended_on, next.stream FROM place, LATERAL (SELECT e.appended_on, e.stream FROM ${table} AS e
        WHERE e.stream IS NOT NULL AND (e.appended_on, e.stream) > (place.appended_on, place.stream)
          AND e.appended_on < left($2, 10)
        ORDER BY e.appended_on, e.stream LIMIT 1) AS next)
    SELECT appended_on || ' ' || stream AS key, stream FROM place LIMIT ${limit}`,
  remove: (table) => `DELETE FROM ${table} AS e USING unnest($1::text[]) AS gone(key)
    WHERE e.appended_on = split_part(gone.key, ' ', 1) AND e.stream = split_part(gone.key, ' ', 2)`,
};
