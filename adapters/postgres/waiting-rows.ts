/**
 * Rows of a table as the waits of a workflow (core/ports/workflows.ts).
 *
 * Invariants: the table has the columns `id`, `due_at`, `revision` and `told`, which names the engine that knows of
 * the row.
 */
import type pg from 'pg';
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { OverdueTimers, Timer, WaitingRows } from '../../core/ports/workflows.ts';
import type { queryReporting } from './outages.ts';

export interface WaitingRowsOptions {
  readonly pool: pg.Pool;
  readonly query: ReturnType<typeof queryReporting>;
  readonly table: string;
  /** An SQL expression of a row's step. */
  readonly step: string;
}

export function createWaitingRows<Step extends string>(options: WaitingRowsOptions): OverdueTimers & WaitingRows<Step> {
  const { pool, query, table, step } = options;
  const select = `SELECT id, ${step} AS step, due_at AS "dueAt", revision FROM ${table}`;
  const timers = async (text: string, values: readonly unknown[]): Promise<readonly Timer<Step>[]> =>
    (await query<Timer<Step>>(pool, `${select} ${text}`, values)).rows;
  return {
    waitOf: async (id) => (await timers('WHERE id = $1', [id]))[0] ?? null,
    earliest: (limit) => timers('ORDER BY due_at, id LIMIT $1', [limit]),
    untold: (engine, limit) => timers('WHERE told IS DISTINCT FROM $1 ORDER BY due_at, id LIMIT $2', [engine, limit]),
    markTold: async (engine, ids) => {
      // Waits for no row, so that it cannot lock out a writer that waits for one of these: such a row is told again.
      const rows = `SELECT id FROM ${table} WHERE id = ANY ($2::uuid[]) FOR UPDATE SKIP LOCKED`;
      await query(pool, `UPDATE ${table} SET told = $1 WHERE id IN (${rows})`, [engine, ids]);
    },
    overdue: async (now) => {
      const text = `SELECT count(*)::int AS count, min(due_at) AS oldest FROM ${table} WHERE due_at <= $1`;
      const { rows } = await query<{ count: number; oldest: Timestamp | null }>(pool, text, [now]);
      return { count: rows[0]?.count ?? 0, oldestAt: rows[0]?.oldest ?? null };
    },
  };
}
