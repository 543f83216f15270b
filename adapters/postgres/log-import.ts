/**
 * Keeps servers, commands and other imports away from a log while it is being imported.
 *
 * Invariants: the database marks its log as unfinished from before the first imported event until the import has
 * read all of them back, and only an import opens such a log. An import begins only when no other process is connected.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Log } from '../../core/ports/log.ts';
import { connectClient } from './pool.ts';

/** How long an import waits for other connections to end: those of a process that just ended may still be open. */
const DISCONNECT_WAIT_MS = 5_000;
const CHECK_INTERVAL_MS = 100;
const APPLICATION_NAME = 'strata import';

export class LogImportError extends Error {
  override readonly name = 'LogImportError';
  readonly code: 'database-in-use' | 'import-unfinished';
  constructor(code: LogImportError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** The right to import into a database. */
export interface LogClaim {
  /** The import must open all its connections with these strings, so that they do not count as other processes. */
  readonly connectionString: string;
  readonly ownerConnectionString: string | null;
  /**
   * Marks the log as unfinished, and deletes the snapshots and the vault's read mark, which belong to the log that was
   * here before. Throws `LogImportError` `database-in-use`, and leaves no new mark, when another process is connected.
   */
  begin(): Promise<void>;
  /** Removes the mark: the log is complete, and any process may open it. */
  finish(pool: pg.Pool): Promise<void>;
  /** Releases the lock that keeps other imports away. */
  close(): Promise<void>;
}

/**
 * Checks that no server, command or other import is connected to the database, and keeps other imports away until
 * `close`. Throws `LogImportError` `database-in-use`. The database need not have its tables yet.
 */
export async function claimLogForImport(options: {
  readonly connectionString: string;
  readonly ownerConnectionString: string | null;
  readonly log: Log;
}): Promise<LogClaim> {
  const connectionString = withApplicationName(options.connectionString);
  const { ownerConnectionString: owner } = options;
  const ownerConnectionString = owner === null ? null : withApplicationName(owner);
  // The owner sees the names of its own connections and of those of the role that serves.
  const client = await connectClient({ ...options, connectionString: ownerConnectionString ?? connectionString });
  try {
    const { rows } = await client.query<{ taken: boolean }>(
      `SELECT pg_try_advisory_lock(hashtextextended('strata.import', 0)) AS taken`,
    );
    if (rows[0]?.taken !== true) throw databaseInUse('Another import is running on this database');
    await checkNoOtherConnection(client);
  } catch (error) {
    await client.end();
    throw error;
  }
  return {
    connectionString,
    ownerConnectionString,
    begin: () => begin(client),
    // Uses another connection: an outage during the import may have ended this one.
    finish: async (pool) => {
      await pool.query('DELETE FROM unfinished_import');
    },
    close: () => client.end(),
  };
}

async function begin(client: pg.ClientBase): Promise<void> {
  const { rowCount } = await client.query('INSERT INTO unfinished_import DEFAULT VALUES ON CONFLICT DO NOTHING');
  try {
    // A process that connects after this point finds the mark and refuses the log.
    await checkNoOtherConnection(client);
  } catch (error) {
    if (rowCount === 1) await client.query('DELETE FROM unfinished_import');
    throw error;
  }
  await client.query('DELETE FROM snapshots');
  await client.query('DELETE FROM vault_read_mark');
}

/** Sets the application name that distinguishes the import's own connections from all others. */
function withApplicationName(connectionString: string): string {
  const url = new URL(connectionString);
  url.searchParams.set('application_name', APPLICATION_NAME);
  return url.href;
}

async function checkNoOtherConnection(client: pg.ClientBase): Promise<void> {
  const giveUpMs = performance.now() + DISCONNECT_WAIT_MS;
  for (let others = await countOtherConnections(client); others > 0; others = await countOtherConnections(client)) {
    if (performance.now() > giveUpMs) {
      throw databaseInUse(
        `A server, or another strata-admin, is connected to this database (${others} connections): stop it first, ` +
          'and do not start it before the import has ended',
      );
    }
    await sleep(CHECK_INTERVAL_MS);
  }
}

/** Counts the connections of Strata's servers and commands, which pool.ts names `strata`. */
async function countOtherConnections(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ others: number }>(
    `SELECT count(*)::int AS others FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'strata'`,
  );
  return rows[0]?.others ?? 0;
}

function databaseInUse(message: string): LogImportError {
  return new LogImportError('database-in-use', message);
}

/** Throws `LogImportError` `import-unfinished` while the log may hold only a part of an imported one. */
export async function refuseUnfinishedImport(pool: pg.Pool): Promise<void> {
  const { rowCount } = await pool.query('SELECT FROM unfinished_import');
  if (rowCount === 0) return;
  throw new LogImportError(
    'import-unfinished',
    'An import into this log was not finished. Run strata-admin log import again with the same file, or with a later ' +
      'export of the same log; or give it an empty database',
  );
}
