/**
 * `deploy/database.sh`: runs the embedded PostgreSQL without a server, for programs of PostgreSQL such as pg_dump and
 * psql.
 *
 * Invariants: no server and no other command runs on the data directory at the same time. The address reaches the
 * program in its environment, since every user of the machine can read arguments.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Logger } from 'pino';
import { exists } from '../../../adapters/embedded-postgres/cluster.ts';
import { startEmbeddedPostgres } from '../../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../../adapters/node/process-facts.ts';
import { lockDataDirectory } from '../../server/data-directory.ts';
import type { Settings } from '../../server/settings.ts';
import { Refused } from '../answer.ts';

/** Resolves with the exit code of the program, which connects as the owner of the database. */
export async function onEmbeddedDatabase(
  { settings, log }: { readonly settings: Settings; readonly log: Logger },
  [program = '', ...args]: readonly string[],
): Promise<number> {
  const { dataDir, databaseUrl } = settings;
  if (databaseUrl !== null) throw new Refused('STRATA_DATABASE_URL is set: the database is not the embedded one');
  if (!(await exists(path.join(dataDir, 'postgres')))) throw new Refused(`There is no database in ${dataDir}`);
  const lock = await lockDataDirectory(dataDir);
  try {
    const embedded = await startEmbeddedPostgres({ dataDir, processFacts, log });
    try {
      const others = Object.entries(process.env).filter(([name]) => !name.startsWith('PG'));
      const env = { ...Object.fromEntries(others), ...addressOf(embedded.ownerConnectionString) };
      const child = spawn(program, args, { env, stdio: 'inherit' });
      await once(child, 'exit');
      return child.exitCode ?? 1;
    } finally {
      await embedded.stop();
    }
  } finally {
    await lock.release();
  }
}

/** The address as libpq's environment variables, of which nothing else may name another database. */
function addressOf(connectionString: string): Readonly<Record<string, string>> {
  const url = new URL(connectionString);
  return {
    PGHOST: url.searchParams.get('host') ?? url.hostname,
    PGPORT: url.port,
    PGUSER: url.username,
    PGPASSWORD: decodeURIComponent(url.password),
    PGDATABASE: url.pathname.slice(1),
  };
}
