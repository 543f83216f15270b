/**
 * Elects one leader among the nodes, by an advisory lock of PostgreSQL (core/ports/lead.ts).
 *
 * Invariants: the lock belongs to a connection that the leader keeps as long as it works, so a node that loses the
 * connection loses the lock. A process that froze, or whose machine vanished, loses both: PostgreSQL ends a leader's
 * session that stays idle for too long.
 */
import type pg from 'pg';
import { createConcurrencyLimit } from '../../core/kernel/concurrency-limit.ts';
import type { Pause } from '../../core/ports/clock.ts';
import type { HeldLead, Lead, TakeLead } from '../../core/ports/lead.ts';
import type { Log } from '../../core/ports/log.ts';
import { leadWhenever } from '../../core/runtime/lead-whenever.ts';
import { failureOf } from './failures.ts';
import { createTicks, type Ticks } from './ticks.ts';

export interface PostgresLeadOptions {
  /** Each lead keeps one connection of the pool for as long as it lasts. */
  readonly pool: pg.Pool;
  readonly pause: Pause;
  readonly log: Log;
  /** How often a node that does not lead tries to take the lead. */
  readonly intervalMs?: number;
}

/** The connection that holds the lock of a lead. It sends the statements of concurrent callers one after another. */
export interface LeadConnection {
  query(statement: {
    readonly name?: string;
    readonly text: string;
    readonly values?: readonly unknown[];
  }): Promise<{ readonly rows: readonly Record<string, unknown>[]; readonly rowCount: number | null }>;
}

const INTERVAL_MS = 1_000;
/**
 * A leader sends a statement this often, and PostgreSQL ends its session when it was idle for the span. So readers,
 * which wait for READ_WAIT_MS at most, find another leader in time.
 */
const HEARTBEAT_INTERVAL_MS = 1_000;
/** How long the session of a leader may be idle. Internal: only a leader whose process hangs reaches it. */
const SESSION_IDLE_MS_MAX = 3_000;

/**
 * Takes the lock and, in the same statement, sets how long the session may be idle, inside a transaction and outside.
 * PostgreSQL has no setting for the latter before version 14.
 */
const TAKE_LEAD = `
  SELECT taken, CASE WHEN taken THEN (
    SELECT count(set_config(name, $2, false)) FROM pg_settings
    WHERE name IN ('idle_session_timeout', 'idle_in_transaction_session_timeout')
  ) END AS bounded
  FROM (SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken) AS tried`;

/** Returns a function that takes leads, each on a connection of the pool. */
export function createTakeLead(pool: pg.Pool): TakeLead<LeadConnection> {
  const heartbeats = createTicks(HEARTBEAT_INTERVAL_MS);
  return async (name) => {
    const client = await pool.connect();
    try {
      const { rows } = await client.query<{ taken: boolean }>({
        text: TAKE_LEAD,
        values: [name, String(SESSION_IDLE_MS_MAX)],
      });
      if (rows[0]?.taken === true) return holdLead(client, heartbeats);
    } catch (error) {
      client.release(true);
      throw error;
    }
    client.release();
    return null;
  };
}

/** Calls `work` in the one node that leads. */
export function createPostgresLead({ pool, pause, log, intervalMs = INTERVAL_MS }: PostgresLeadOptions): Lead {
  const takeLead = createTakeLead(pool);
  return {
    whenever(name, work) {
      const ending = new AbortController();
      const { signal } = ending;
      const leading = leadWhenever({
        take: () => takeLead(`strata.lead.${name}`),
        work: ({ lost }) => work(AbortSignal.any([signal, lost])),
        standbyMs: intervalMs,
        pause,
        onFault: (error) => log.warn({ err: error, lead: name }, 'Lost the lead; trying to take it again'),
        signal,
      });
      return async () => {
        ending.abort();
        await leading;
      };
    },
  };
}

/** Watches the connection that holds the lock, and sends heartbeats on it. */
function holdLead(client: pg.PoolClient, heartbeats: Ticks): HeldLead<LeadConnection> {
  const session: LeadConnection = client;
  const losing = new AbortController();
  const lose = (error: unknown): void => losing.abort(error);
  client.on('error', lose);
  client.on('end', () => lose(new Error('Connection terminated while it held a lead')));
  const oneAtATime = createConcurrencyLimit(1);
  const connection: LeadConnection = { query: (statement) => oneAtATime(() => session.query(statement)) };
  const stopHeartbeats = sendHeartbeats(connection, heartbeats, lose);
  let released = false;
  return {
    connection,
    lost: losing.signal,
    release: () => {
      if (released) return;
      released = true;
      stopHeartbeats();
      client.release(true);
    },
  };
}

/**
 * Sends a statement at every interval between those of the work, which may compute for long without sending any.
 * Returns the function that stops the heartbeats.
 */
function sendHeartbeats(connection: LeadConnection, heartbeats: Ticks, lose: (error: unknown) => void): () => void {
  let unanswered = false;
  const beat = (): void => {
    stop = heartbeats.next(beat);
    if (unanswered) return;
    unanswered = true;
    const answered = (): void => void (unanswered = false);
    connection.query({ text: 'SELECT 1' }).then(answered, (error: unknown) => {
      answered();
      // PostgreSQL also refuses the statement within a transaction that has failed; the work rolls that back.
      if (failureOf(error) === 'connection-lost') lose(error);
    });
  };
  let stop = heartbeats.next(beat);
  return () => stop();
}
