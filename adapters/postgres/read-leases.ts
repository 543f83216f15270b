/**
 * The table of read leases in PostgreSQL.
 *
 * Invariants: each call is one message of the simple query protocol, so a process that freezes holds no lock. Who
 * renews or tells does not wait for the disk: a crash may then lose a renewal, which only makes a lease look older.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Lease, LeaseListener, LeaseTable } from '../../core/ports/read-leases.ts';
import { listen } from './listener.ts';

/** How soon a process that does not listen sees what others told: its appends wait for that. */
const ASKING_INTERVAL_MS = 25;

/** `node` names this process: at most 64 bytes without spaces. `pool` is the caller's. */
export function createPostgresLeaseTable(options: {
  readonly connectionString: string;
  readonly pool: pg.Pool;
  readonly node: string;
  readonly log: Log;
  /** Whether it listens on a connection of its own, as it does by default; else it asks forty times a second. */
  readonly listens?: boolean;
}): LeaseTable {
  const { connectionString, pool, node, log } = options;
  const me = literal(node);
  const rows = async (): Promise<readonly Lease[]> => {
    const found = await pool.query<{ node: string; epoch: string; renewals: string; heard: string; span: number }>(
      'SELECT node, epoch, renewals, heard, span_ms AS span FROM read_leases',
    );
    return found.rows.map((row) => leaseOf([row.node, Number(row.epoch), Number(row.renewals), row.heard, row.span]));
  };
  return {
    insert: async (spanMs) => {
      const { rows } = await pool.query<{ epoch: string }>(`SELECT take_read_lease(${me}, ${spanMs}) AS epoch`);
      return Number(rows[0]?.epoch);
    },
    renew: async (epoch) => {
      const text = `UPDATE read_leases SET renewals = renewals + 1 WHERE node = ${me} AND epoch = ${epoch}`;
      return (await lazily(pool, text)) > 0;
    },
    remove: async ({ node: silent, epoch, renewals }) => {
      await pool.query(
        `DELETE FROM read_leases WHERE node = ${literal(silent)} AND epoch = ${epoch} AND renewals = ${renewals}`,
      );
    },
    giveUp: async (epoch) => {
      await pool.query(`DELETE FROM read_leases WHERE node = ${me} AND epoch = ${epoch}`);
    },
    rows,
    tell: async (epoch, position) => {
      const heard = `UPDATE read_leases SET heard = greatest(heard, ${position}) WHERE node = ${me} AND epoch = ${epoch}`;
      await lazily(pool, heard, `SELECT pg_notify('strata_leases', ${literal(`heard ${position} ${node}`)})`);
    },
    listen: (listener) => {
      if (options.listens === false) return askAgainAndAgain(rows, listener);
      return listen(
        { connectionString, log },
        {
          channel: 'strata_leases',
          onNotification: (payload) => receive(payload, listener),
          // What was missed without a connection is settled by the spans of the leases.
          onConnected: () => undefined,
          whenLost: 'Cannot listen for read leases: appends may wait for their spans',
        },
      );
    },
  };
}

/** Reads who has heard of which position. What a failed read misses is settled by the spans of the leases. */
function askAgainAndAgain(rows: LeaseTable['rows'], listener: LeaseListener): { close(): Promise<void> } {
  const closing = new AbortController();
  const ask = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const leases = await rows().catch(() => []);
      for (const { node, heard } of leases) listener.onHeard(node, heard);
      // This sleep rejects only when `close` aborts it.
      await sleep(ASKING_INTERVAL_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  };
  const asking = ask();
  return {
    close: () => {
      closing.abort();
      return asking;
    },
  };
}

/** Removes every lease. For the only process of a database, which has none yet. */
export async function endAllLeases(pool: pg.Pool): Promise<void> {
  await pool.query('DELETE FROM read_leases');
}

/**
 * Runs the statements in a transaction that does not wait for the disk; returns how many rows the first one changed.
 */
async function lazily(pool: pg.Pool, ...statements: readonly string[]): Promise<number> {
  const text = ['BEGIN', 'SET LOCAL synchronous_commit TO off', ...statements, 'COMMIT'].join('; ');
  // A message of several statements has an answer for each.
  const answers: unknown = await pool.query(text);
  const first: unknown = Array.isArray(answers) ? answers[2] : null;
  return typeof first === 'object' && first !== null && 'rowCount' in first ? Number(first.rowCount) : 0;
}

/** pool.ts sets standard_conforming_strings, so only the quote is special. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Parses leases as append_events_leased returns them; throws TypeError for anything else. */
export function leasesOf(lines: unknown): readonly Lease[] {
  if (!Array.isArray(lines)) throw new TypeError('The log returned no list of leases');
  return lines.map(leaseOf);
}

function leaseOf(line: unknown): Lease {
  const fields: readonly unknown[] = Array.isArray(line) ? line : [];
  const [node, epoch, renewals, heard, spanMs] = fields;
  const numbers = [epoch, renewals, spanMs].every(Number.isSafeInteger);
  if (typeof node !== 'string' || !numbers) {
    throw new TypeError(`The log returned an unknown lease: ${JSON.stringify(line)}`);
  }
  return { node, epoch: Number(epoch), renewals: Number(renewals), heard: positionOf(heard), spanMs: Number(spanMs) };
}

function positionOf(text: unknown): LogPosition {
  if (typeof text !== 'string' || !/^\d{1,18}$/.test(text)) throw new TypeError('The log returned no position');
  return BigInt(text) as LogPosition;
}

/** Any user of the database can send a notification: one of another form does not count. */
function receive(payload: string, listener: LeaseListener): void {
  const [, kind, digits, rest] = /^(head|heard) (\d{1,18}) (.+)$/s.exec(payload) ?? [];
  if (digits === undefined || rest === undefined) return;
  const position = BigInt(digits) as LogPosition;
  if (kind === 'heard') {
    listener.onHeard(rest, position);
    return;
  }
  try {
    const lines: unknown = JSON.parse(rest);
    listener.onHead(position, lines === null ? null : leasesOf(lines));
  } catch {
    listener.onHead(position, null);
  }
}
