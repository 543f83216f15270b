/**
 * Pruning on PostgreSQL (core/ports/log-pruning.ts): one function of the database decides (migrations/019-prune.ts).
 */
import type pg from 'pg';
import { EventStoreError } from '../../core/ports/event-store.ts';
import type { LogPruning } from '../../core/ports/log-pruning.ts';
import { queryReporting, unavailable } from './outages.ts';

const query = queryReporting(unavailable(EventStoreError, 'log-unavailable'));

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresLogPruning(pool: pg.Pool): LogPruning {
  return {
    async prune({ stream, lastRevision }, olderThan) {
      const text = 'SELECT prune_stream($1, $2, $3) AS pruned';
      const { rows } = await query<{ pruned: boolean }>(pool, text, [stream, lastRevision, olderThan]);
      return rows[0]?.pruned === true;
    },
  };
}
