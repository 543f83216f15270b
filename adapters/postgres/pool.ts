/**
 * Connections to PostgreSQL, all with the same bounds on time.
 *
 * Must stay true: no connection waits for ever, on either side: a peer that froze or vanished is given up, and so
 * is one of ours that the server waits for (design/event-log.md).
 */
import pg from 'pg';
import type { Log } from '../../core/ports/log.ts';

const CONNECT_SPAN_MS = 5_000;
const STATEMENT_SPAN_MS = 10_000;
const LOCK_WAIT_MS = 5_000;
const IDLE_IN_TRANSACTION_MS = 10_000;
const TRANSACTION_SPAN_MS = 60_000;
/** What the client adds to the statement's span before it gives the connection up. */
const ANSWER_MARGIN_MS = 2_000;
const KEEP_ALIVE_DELAY_MS = 10_000;
const CONNECTIONS_MAX = 10;

export interface PoolOptions {
  /** `postgresql://user:password@host:port/database`, as pg reads it. */
  readonly connectionString: string;
  readonly log: Log;
  readonly connectionsMax?: number;
  /** For work that takes long by nature, such as a rebuild. */
  readonly statementSpanMs?: number;
  readonly transactionSpanMs?: number;
}

/** A pool whose lost connections are logged and replaced; it never throws outside a query. */
export function createPool(options: PoolOptions): pg.Pool {
  // pg-pool waits for the promise, though its type knows of none.
  const onConnect = (client: pg.ClientBase): unknown => prepareSession(client, options);
  const pool = new pg.Pool({ ...clientConfig(options), max: options.connectionsMax ?? CONNECTIONS_MAX, onConnect });
  const report = (error: Error): void => {
    // PostgreSQL may end before the last connection of a closed pool has said goodbye.
    if (!pool.ending) options.log.warn({ err: error }, 'A connection to PostgreSQL was lost');
  };
  pool.on('error', report);
  // pg-pool takes its own listener away while a client is in use; without one, a loss would end this process.
  pool.on('connect', (client) => client.on('error', report));
  return pool;
}

/** A connection outside a pool, for LISTEN. The caller listens to `error`. */
export async function connectClient(options: PoolOptions): Promise<pg.Client> {
  const client = new pg.Client(clientConfig(options));
  client.on('error', (error) => options.log.warn({ err: error }, 'The connection that listens to PostgreSQL was lost'));
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

/** Sets what the server has of these: transaction_timeout came with version 17, and sockets have no TCP settings. */
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
    // The append relies on a new snapshot for each statement, and on plain string literals.
    default_transaction_isolation: 'read committed',
    standard_conforming_strings: 'on',
  };
  await client.query(
    `SELECT set_config(wanted.name, wanted.value, false)
     FROM unnest($1::text[], $2::text[]) AS wanted (name, value) JOIN pg_settings USING (name)`,
    [Object.keys(settings), Object.values(settings)],
  );
}
