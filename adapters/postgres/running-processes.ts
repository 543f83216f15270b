/**
 * The processes that run on the log, and the versions of events that are written, as rows of PostgreSQL
 * (core/ports/running-processes.ts).
 *
 * Invariants: `LOCK` is held from before a process is listed, or a version becomes the written one, until that is
 * committed. The statements after it see what was committed before it.
 */
import type pg from 'pg';
import {
  type EventVersions,
  PROCESS_SPAN_MS,
  type ReadForms,
  type RunningProcesses,
  writtenVersion,
} from '../../core/ports/running-processes.ts';
import { inPoolTransaction } from './transaction.ts';

const LOCK = `SELECT pg_advisory_xact_lock(hashtextextended('strata.written-events', 0))`;

const IS_OF_SPAN = `kept_at > clock_timestamp() - interval '${PROCESS_SPAN_MS} milliseconds'`;

/** A process that does not read what is written is not listed: it must end, and nobody waits for it. */
const KEEP = `
  WITH gone AS (DELETE FROM running_processes WHERE NOT (${IS_OF_SPAN}) AND id <> $1)
  INSERT INTO running_processes (id, events, models, kept_at) SELECT $1::uuid, $2::jsonb, $3::jsonb, clock_timestamp()
    WHERE NOT EXISTS (SELECT FROM written_events WHERE version > coalesce(($2::jsonb ->> type)::integer, 0))
  ON CONFLICT (id) DO UPDATE
    SET events = excluded.events, models = excluded.models, kept_at = excluded.kept_at, ended = false`;

/** The last one of the ended processes that read the same is enough. */
const REMOVE = `
  WITH ended AS (
    UPDATE running_processes SET ended = true, kept_at = clock_timestamp() WHERE id = $1 RETURNING events)
  DELETE FROM running_processes p USING ended e WHERE p.ended AND p.id <> $1 AND p.events = e.events`;

const LIST = `SELECT events, models FROM running_processes WHERE ${IS_OF_SPAN} AND NOT ended`;

/**
 * `$1` are versions by type, `$2` those for types whose version some process does not read. What `writtenVersion` says
 * of a missing type needs no row.
 */
const WRITE_WHAT_ALL_READ = `
  WITH wanted AS (
    SELECT newest.key AS type, CASE
        WHEN NOT EXISTS (SELECT FROM running_processes WHERE ${IS_OF_SPAN}
          AND coalesce((events ->> newest.key)::integer, 0) < newest.value::integer)
        THEN newest.value::integer
        ELSE ($2::jsonb ->> newest.key)::integer
      END AS version
    FROM jsonb_each_text($1::jsonb) AS newest)
  INSERT INTO written_events AS w (type, version) SELECT type, version FROM wanted
    WHERE version > least(1, ($2::jsonb ->> type)::integer)
  ON CONFLICT (type) DO UPDATE SET version = excluded.version WHERE w.version < excluded.version`;

const WRITE = `
  INSERT INTO written_events (type, version) SELECT key, value::integer FROM jsonb_each_text($1::jsonb)
  ON CONFLICT (type) DO UPDATE SET version = excluded.version`;

async function writtenEvents(client: pg.ClientBase): Promise<EventVersions> {
  const { rows } = await client.query<{ type: string; version: number }>('SELECT type, version FROM written_events');
  return Object.fromEntries(rows.map(({ type, version }) => [type, version]));
}

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresRunningProcesses(pool: pg.Pool): RunningProcesses {
  return {
    keep(process, { events, models }, oldest) {
      return inPoolTransaction(pool, async (client) => {
        await client.query(LOCK);
        const { rowCount } = await client.query(KEEP, [process, JSON.stringify(events), JSON.stringify(models)]);
        if (rowCount === 1) await client.query(WRITE_WHAT_ALL_READ, [JSON.stringify(events), JSON.stringify(oldest)]);
        return writtenEvents(client);
      });
    },
    write(versions, oldest, whoeverRuns) {
      return inPoolTransaction(pool, async (client) => {
        await client.query(LOCK);
        const written = await writtenEvents(client);
        const newer = Object.entries(versions).filter(
          ([type, version]) => version > writtenVersion(type, written, oldest),
        );
        const raised = Object.fromEntries(newer);
        const { rows: listed } = await client.query<ReadForms>(LIST);
        const older = listed.filter(({ events }) => newer.some(([type, version]) => (events[type] ?? 0) < version));
        const olderProcesses = older.length;
        if (olderProcesses > 0 && !whoeverRuns) return { written, raised, olderProcesses };
        await client.query(WRITE, [JSON.stringify(raised)]);
        return { written: { ...written, ...raised }, raised, olderProcesses };
      });
    },
    async remove(process) {
      await pool.query(REMOVE, [process]);
    },
    async list() {
      return (await pool.query<ReadForms>(LIST)).rows;
    },
  };
}
