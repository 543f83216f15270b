/**
 * The table of read leases in PostgreSQL.
 *
 * Invariants: each call is one message of the simple query protocol, so a process that freezes holds no lock. Who
 * renews or tells does not wait for the disk: a crash of the database may then lose a renewal, so that a lease looks
 * older than it is. A removal therefore names the life of the database in which its row was read, and removes nothing
 * in another one, nor within the longest span after its beginning.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { READ_LEASE_SPAN_MS_MAX } from '../../core/kernel/limits.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Lease, LeaseListener, LeaseTable } from '../../core/ports/read-leases.ts';
import { listen } from './listener.ts';

/** How soon a process that does not listen sees what others told: its appends wait for that. */
const ASKING_INTERVAL_MS = 25;

interface Row {
  readonly node: string;
  readonly epoch: string;
  readonly renewals: string;
  readonly heard: string;
  readonly span: number;
  readonly life: string | null;
}

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
    const found = await pool.query<Row>(
      `SELECT l.node, l.epoch, l.renewals, l.heard, l.span_ms AS span, coalesce(d.id, ensure_database_life()) AS life
       FROM read_leases l LEFT JOIN database_life d ON d.written_at <= clock_timestamp()`,
    );
    return found.rows.map(({ node, epoch, renewals, heard, span, life }) =>
      leaseOf([node, Number(epoch), Number(renewals), heard, span], life === null ? null : Number(life)),
    );
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
    remove: async ({ node: silent, epoch, renewals, life }) => {
      if (life === null) return;
      await pool.query(
        `DELETE FROM read_leases WHERE node = ${literal(silent)} AND epoch = ${epoch} AND renewals = ${renewals}
           AND EXISTS (SELECT FROM database_life d WHERE d.id = ${life}
             AND d.written_at <= clock_timestamp() - interval '${READ_LEASE_SPAN_MS_MAX} ms')`,
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

/** Parses leases and the database's life, as append_events_leased returns them; throws TypeError for another form. */
export function leasesOf(lines: unknown, life: unknown): readonly Lease[] {
  if (!Array.isArray(lines)) throw new TypeError('The log returned no list of leases');
  return lines.map((line) => leaseOf(line, Number.isSafeInteger(life) ? Number(life) : null));
}

function leaseOf(line: unknown, life: number | null): Lease {
  const fields: readonly unknown[] = Array.isArray(line) ? line : [];
  const [node, epoch, renewals, heard, spanMs] = fields;
  const numbers = [epoch, renewals, spanMs].every(Number.isSafeInteger);
  if (typeof node !== 'string' || !numbers) {
    throw new TypeError(`The log returned an unknown lease: ${JSON.stringify(line)}`);
  }
  const span = { spanMs: Number(spanMs), life };
  return { node, epoch: Number(epoch), renewals: Number(renewals), heard: positionOf(heard), ...span };
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
    listener.onHead(position, lines === null ? null : leasesOf(lines, null));
  } catch {
    listener.onHead(position, null);
  }
}
