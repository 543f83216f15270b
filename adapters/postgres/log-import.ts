/**
 * What keeps everybody else away from a log that is being imported.
 *
 * Must stay true: from before the first imported event until all were read back, the database says that its log is
 * unfinished, and nothing but the import opens such a log; the import begins only where nobody else is connected.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Log } from '../../core/ports/log.ts';
import { connectClient } from './pool.ts';

/** Connections of a process that has ended are gone after this. */
const OTHERS_LEAVE_MS = 5_000;
const LOOK_INTERVAL_MS = 100;
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
  /** For every connection of the import itself. */
  readonly connectionString: string;
  /**
   * Marks the log as unfinished, and forgets what was derived from the log that was here before, or counts its
   * positions. Throws `LogImportError` `database-in-use`, and leaves no mark, when somebody came after the claim.
   */
  begin(): Promise<void>;
  /** The log is whole: everybody may open it. */
  finish(pool: pg.Pool): Promise<void>;
  /** Lets other imports begin. */
  close(): Promise<void>;
}

/**
 * Makes sure that no server, command or other import works on the database, and keeps other imports away until
 * closed. Throws `LogImportError` `database-in-use`. The database may still lack its tables.
 */
export async function claimLogForImport(options: {
  readonly connectionString: string;
  readonly log: Log;
}): Promise<LogClaim> {
  const connectionString = withName(options.connectionString);
  const client = await connectClient({ ...options, connectionString });
  try {
    const { rows } = await client.query<{ taken: boolean }>(
      `SELECT pg_try_advisory_lock(hashtextextended('strata.import', 0)) AS taken`,
    );
    if (rows[0]?.taken !== true) throw inUse('Another import is under way on this database');
    await checkAlone(client);
  } catch (error) {
    await client.end();
    throw error;
  }
  return {
    connectionString,
    begin: () => begin(client),
    // Not on this connection: an outage that the import has survived may have ended it.
    finish: async (pool) => {
      await pool.query('DELETE FROM unfinished_import');
    },
    close: () => client.end(),
  };
}

async function begin(client: pg.ClientBase): Promise<void> {
  const { rowCount } = await client.query('INSERT INTO unfinished_import DEFAULT VALUES ON CONFLICT DO NOTHING');
  try {
    // Whoever connects from here on finds the mark.
    await checkAlone(client);
  } catch (error) {
    if (rowCount === 1) await client.query('DELETE FROM unfinished_import');
    throw error;
  }
  await client.query('DELETE FROM snapshots');
  await client.query('DELETE FROM vault_read_mark');
}

/** The name by which the import's own connections are told from everybody else's. */
function withName(connectionString: string): string {
  const url = new URL(connectionString);
  url.searchParams.set('application_name', APPLICATION_NAME);
  return url.href;
}

async function checkAlone(client: pg.ClientBase): Promise<void> {
  const giveUpMs = performance.now() + OTHERS_LEAVE_MS;
  for (let others = await connected(client); others > 0; others = await connected(client)) {
    if (performance.now() > giveUpMs) {
      throw inUse(
        `A server, or another strata-admin, works on this database (${others} connections): stop it first, and ` +
          'do not start it before the import has ended',
      );
    }
    await sleep(LOOK_INTERVAL_MS);
  }
}

/** Connections of the pools and listeners of this program's processes (pool.ts names them). */
async function connected(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ others: number }>(
    `SELECT count(*)::int AS others FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'strata'`,
  );
  return rows[0]?.others ?? 0;
}

function inUse(message: string): LogImportError {
  return new LogImportError('database-in-use', message);
}

/** Throws `LogImportError` `import-unfinished` while the log may hold only a part of another. */
export async function refuseUnfinishedImport(pool: pg.Pool): Promise<void> {
  const { rowCount } = await pool.query('SELECT FROM unfinished_import');
  if (rowCount === 0) return;
  throw new LogImportError(
    'import-unfinished',
    'An import into this log was not finished. Run strata-admin log import again with the same file, or with a later ' +
      'export of the same log; or give it an empty database',
  );
}
