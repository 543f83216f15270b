/**
 * Connections to PostgreSQL, all with the same time limits.
 *
 * Invariants: neither side waits without end. The client gives up a server that froze or vanished, and PostgreSQL
 * gives up a client that did (docs/event-log.md).
 */
import pg from 'pg';
import type { Log } from '../../core/ports/log.ts';

const CONNECT_SPAN_MS = 5_000;
const STATEMENT_SPAN_MS = 10_000;
const LOCK_WAIT_MS = 5_000;
const IDLE_IN_TRANSACTION_MS = 10_000;
const TRANSACTION_SPAN_MS = 60_000;
/** How much longer than `statement_timeout` the client waits for an answer before it gives the query up. */
const ANSWER_MARGIN_MS = 2_000;
const KEEP_ALIVE_DELAY_MS = 10_000;
/** Connections of a pool, unless its user asks for another number. Internal: further statements wait. */
const CONNECTIONS_MAX = 10;

export interface PoolOptions {
  /** `postgresql://user:password@host:port/database`, in the form that pg parses. */
  readonly connectionString: string;
  readonly log: Log;
  readonly connectionsMax?: number;
  /** Whether connections stay open without use; else each is closed ten seconds after its last. */
  readonly keepsOpen?: boolean;
  /** Override the defaults of 10 s and 60 s, for long work such as a rebuild. */
  readonly statementSpanMs?: number;
  readonly transactionSpanMs?: number;
}

/** Creates a pool that logs and replaces lost connections. It throws only from queries and connects. */
export function createPool(options: PoolOptions): pg.Pool {
  // pg-pool awaits the returned promise, although its types declare none.
  const onConnect = (client: pg.ClientBase): unknown => prepareSession(client, options);
  const max = options.connectionsMax ?? CONNECTIONS_MAX;
  const min = options.keepsOpen === true ? max : 0;
  const pool = new pg.Pool({ ...clientConfig(options), max, min, onConnect });
  const report = (error: Error): void => {
    // PostgreSQL may shut down before the last connection of a closed pool has ended; that is no loss.
    if (!pool.ending) options.log.warn({ err: error }, 'A connection to PostgreSQL was lost');
  };
  pool.on('error', report);
  // pg-pool removes its own `error` listener while a client is in use; without one, a loss would end this process.
  pool.on('connect', (client) => client.on('error', report));
  return pool;
}

/** How many connections of a pool are in use, how many calls wait for one, and how many it may open. */
export interface PoolFigures {
  readonly inUse: number;
  readonly waiting: number;
  readonly connectionsMax: number;
}

export function figuresOf({ totalCount, idleCount, waitingCount, options }: pg.Pool): PoolFigures {
  return { inUse: totalCount - idleCount, waiting: waitingCount, connectionsMax: options.max };
}

/** Opens a connection outside a pool, for LISTEN or a session lock. Logs when the connection is lost. */
export async function connectClient(options: PoolOptions): Promise<pg.Client> {
  const client = new pg.Client(clientConfig(options));
  client.on('error', (error) => options.log.warn({ err: error }, 'A connection to PostgreSQL outside a pool was lost'));
  try {
    await client.connect();
    await prepareSession(client, options);
    return client;
  } catch (error) {
    await client.end();
    throw error;
  }
}

function clientConfig(options: PoolOptions): pg.ClientConfig {
  return {
    connectionString: options.connectionString,
    application_name: 'strata',
    connectionTimeoutMillis: CONNECT_SPAN_MS,
    query_timeout: (options.statementSpanMs ?? STATEMENT_SPAN_MS) + ANSWER_MARGIN_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
  };
}

/** Sets those of these settings that the server knows: transaction_timeout exists since version 17. */
async function prepareSession(client: pg.ClientBase, options: PoolOptions): Promise<void> {
  const settings: Record<string, string> = {
    statement_timeout: String(options.statementSpanMs ?? STATEMENT_SPAN_MS),
    lock_timeout: String(LOCK_WAIT_MS),
    idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_MS),
    transaction_timeout: String(options.transactionSpanMs ?? TRANSACTION_SPAN_MS),
    tcp_user_timeout: String(KEEP_ALIVE_DELAY_MS),
    tcp_keepalives_idle: String(KEEP_ALIVE_DELAY_MS / 1_000),
    tcp_keepalives_interval: '5',
    tcp_keepalives_count: '3',
    // append_events needs a new snapshot for each statement; append-call.ts needs plain string literals.
    default_transaction_isolation: 'read committed',
    standard_conforming_strings: 'on',
  };
  await client.query(
    `SELECT set_config(wanted.name, wanted.value, false)
     FROM unnest($1::text[], $2::text[]) AS wanted (name, value) JOIN pg_settings USING (name)`,
    [Object.keys(settings), Object.values(settings)],
  );
}
