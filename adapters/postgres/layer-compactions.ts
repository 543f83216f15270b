/**
 * The repositories that are to be compacted, on PostgreSQL (core/ports/layer-compactions.ts). They are also the rows of
 * the workflow that compacts.
 */
import type pg from 'pg';
import {
  type CompactionStep,
  type LayerCompactions,
  LayerCompactionsError,
  type WantedCompaction,
} from '../../core/ports/layer-compactions.ts';
import type { OverdueTimers, WaitingRows } from '../../core/ports/workflows.ts';
import { queryReporting, unavailable } from './outages.ts';
import { createWaitingRows } from './waiting-rows.ts';

const query = queryReporting(unavailable(LayerCompactionsError, 'layer-compactions-unavailable'));

/** The engine that was told of a row is told again: the row may be due earlier now, and has another revision. */
const WANT = `
  INSERT INTO layer_compactions AS known (id, account, due_at) VALUES ($1, $2, $3)
  ON CONFLICT (id) DO UPDATE
  SET due_at = LEAST(known.due_at, excluded.due_at), revision = known.revision + 1, told = NULL`;

export type PostgresLayerCompactions = LayerCompactions & OverdueTimers & WaitingRows<CompactionStep>;

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresLayerCompactions(pool: pg.Pool): PostgresLayerCompactions {
  return {
    ...createWaitingRows<CompactionStep>({ pool, query, table: 'layer_compactions', step: `'compact'` }),
    async want({ account, repository }, dueAt) {
      await query(pool, WANT, [repository, account, dueAt]);
    },
    async find(repository) {
      const text = 'SELECT account, id AS repository FROM layer_compactions WHERE id = $1';
      return (await query<WantedCompaction>(pool, text, [repository])).rows[0] ?? null;
    },
    async done(repository, revision) {
      await query(pool, 'DELETE FROM layer_compactions WHERE id = $1 AND revision = $2', [repository, revision]);
    },
  };
}
