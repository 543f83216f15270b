/** A real PostgreSQL for tests of the read models. */
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { cleanUp, type Ending } from './cleanup.ts';
import { keepLog } from './log.ts';

/** A server for the tests of a file, stopped after the last of them. Call it at the top of the file. */
export async function startDatabase(): Promise<string> {
  const dataDir = await mkdtemp(path.join(await realpath(os.tmpdir()), 'strata-test-'));
  await chmod(dataDir, 0o711);
  const embedded = await startEmbeddedPostgres({ dataDir, log: keepLog() });
  after(async () => {
    await embedded.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
  return embedded.connectionString;
}

let databases = 0;

/** An empty database on the server, and a pool for it. */
export async function newDatabase(context: Ending, connectionString: string): Promise<pg.Pool> {
  databases += 1;
  const name = `test_${process.pid}_${databases}`;
  const admin = new pg.Client({ connectionString });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  await admin.end();
  const url = new URL(connectionString);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 20 });
  // A test that ends connections on purpose sees it where it matters.
  pool.on('error', () => undefined);
  cleanUp(context, () => pool.end());
  return pool;
}
