/** The processes that run on the log, as rows of PostgreSQL (core/ports/running-processes.ts). */
import type pg from 'pg';
import { PROCESS_SPAN_MS, type ReadForms, type RunningProcesses } from '../../core/ports/running-processes.ts';

const IS_LISTED = `kept_at > clock_timestamp() - interval '${PROCESS_SPAN_MS} milliseconds'`;

const KEEP = `
  WITH gone AS (DELETE FROM running_processes WHERE NOT (${IS_LISTED}) AND id <> $1)
  INSERT INTO running_processes (id, events, models, kept_at) VALUES ($1, $2, $3, clock_timestamp())
  ON CONFLICT (id) DO UPDATE SET events = excluded.events, models = excluded.models, kept_at = excluded.kept_at`;

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresRunningProcesses(pool: pg.Pool): RunningProcesses {
  return {
    async keep(process, { events, models }) {
      await pool.query(KEEP, [process, JSON.stringify(events), JSON.stringify(models)]);
    },
    async remove(process) {
      await pool.query('DELETE FROM running_processes WHERE id = $1', [process]);
    },
    async list() {
      const { rows } = await pool.query<ReadForms>(`SELECT events, models FROM running_processes WHERE ${IS_LISTED}`);
      return rows;
    },
  };
}
