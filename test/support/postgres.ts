/**
 * PostgreSQL for tests: a new database for each call, copied from a migrated template.
 *
 * STRATA_TEST_POSTGRES names a running server on which tests may create and drop databases. Without it each process
 * starts a server of its own, which ends when the process ends, even by a SIGKILL.
 */
import { createHash, randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { prepareDatabase } from '../../adapters/postgres/serving-role.ts';
import { afterProcess } from './after-process.ts';
import { keepLog } from './log.ts';
import { copyMadeDataDir } from './made-data-dir.ts';

/** No data outlives a test, so PostgreSQL neither syncs nor writes full pages. */
const FAST_SETTINGS = { fsync: 'off', full_page_writes: 'off', max_connections: '1000' };
/** Any number will do; every process that makes the template uses the same one. */
const TEMPLATE_LOCK = 7_303_014;
/** The role that serves, of every test database on a server. */
const SERVING = { role: 'strata_test_server', password: 'no-secret' };

export interface TestCluster {
  /** Connects as the owner. Pass it to other processes as STRATA_TEST_POSTGRES. */
  readonly connectionString: string;
  readonly embedded: EmbeddedPostgres;
  /** The server's data directory, for tests that start it again. */
  readonly dataDir: string;
  stop(): Promise<void>;
}

export interface TestDatabase {
  /** A migrated, empty database; connects as its owner. */
  readonly connectionString: string;
  /** Connects as the role that serves. */
  readonly servingConnectionString: string;
  /** Ends the remaining connections to the database and drops it. */
  close(): Promise<void>;
}

/** Starts a server in a temporary directory. Both are removed when this process ends, even after a SIGKILL. */
export async function startTestCluster(settings: Readonly<Record<string, string>> = {}): Promise<TestCluster> {
  const root = await mkdtemp(path.join(await realpath(os.tmpdir()), 'strata-test-postgres-'));
  await chmod(root, 0o711);
  const dataDir = path.join(root, 'data');
  await copyMadeDataDir(dataDir);
  const log = keepLog();
  const embedded = await startEmbeddedPostgres({
    processFacts,
    dataDir,
    log,
    settings: { ...FAST_SETTINGS, ...settings },
  });
  const stopServer = 'kill -QUIT "$(head -n 1 "$1/data/postgres/cluster/postmaster.pid")"';
  const dismiss = afterProcess(`${stopServer}; sleep 1; rm -rf "$1"`, root);
  return {
    connectionString: embedded.ownerConnectionString,
    embedded,
    dataDir,
    stop: async () => {
      await embedded.stop();
      dismiss();
      await rm(root, { recursive: true, force: true });
    },
  };
}

let ownCluster: Promise<TestCluster> | null = null;

/** Makes a new database. It stays until `close` is called or its server is gone. */
export async function testDatabase(): Promise<TestDatabase> {
  const shared = process.env['STRATA_TEST_POSTGRES'];
  if (shared !== undefined) return databaseOn(shared);
  ownCluster ??= startTestCluster();
  return databaseOn((await ownCluster).connectionString);
}

/**
 * Makes a new database on a server of its own, for tests that count what PostgreSQL reads: a transaction in any of its
 * databases keeps removed rows in the indexes of all of them.
 */
export async function databaseAlone(): Promise<TestDatabase> {
  const cluster = await startTestCluster();
  const database = await databaseOn(cluster.connectionString);
  return { ...database, close: () => cluster.stop() };
}

/** Makes a new database on the given server. */
export async function databaseOn(server: string): Promise<TestDatabase> {
  const template = await ensureTemplate(server);
  const name = `strata_test_${randomBytes(8).toString('hex')}`;
  // Copying its files costs a quarter of the time of copying through the write-ahead log.
  const create = `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`;
  await administer(server, (client) => client.query(create));
  return {
    connectionString: named(server, name),
    servingConnectionString: served(server, name),
    close: async () => {
      await administer(server, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}

/** Returns the connection string of another database of the same server. */
function named(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

/** Returns the connection string of the role that serves. */
function served(server: string, database: string): string {
  const url = new URL(named(server, database));
  [url.username, url.password] = [SERVING.role, SERVING.password];
  return url.href;
}

const templates = new Map<string, Promise<string>>();

/** Returns the template's name; each process looks for it once on each server. */
function ensureTemplate(server: string): Promise<string> {
  const known = templates.get(server) ?? makeTemplate(server);
  templates.set(server, known);
  return known;
}

/** The first process makes the template, under an advisory lock. Its name is a digest of the migrations. */
async function makeTemplate(server: string): Promise<string> {
  const directory = path.join(import.meta.dirname, '../../adapters/postgres/migrations');
  const digest = createHash('sha256');
  for (const file of [...(await readdir(directory)).sort(), '../serving-role.ts']) {
    digest.update(await readFile(path.join(directory, file)));
  }
  const name = `strata_template_${digest.digest('hex').slice(0, 16)}`;
  await administer(server, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [TEMPLATE_LOCK]);
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    if (rowCount !== 0) return;
    const draft = `${name}_${randomBytes(4).toString('hex')}`;
    await client.query(`CREATE DATABASE ${draft}`);
    const role = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [SERVING.role]);
    if (role.rowCount === 0) await client.query(`CREATE ROLE ${SERVING.role} LOGIN PASSWORD '${SERVING.password}'`);
    const connections = { connectionString: served(server, draft), ownerConnectionString: named(server, draft) };
    await prepareDatabase({ ...connections, log: keepLog() });
    // Renamed only when it is complete: the process may end before.
    await client.query(`ALTER DATABASE ${draft} RENAME TO ${name}`);
  });
  return name;
}

/** Runs `run` on a connection to the server's default database. */
async function administer(server: string, run: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await run(client);
  } finally {
    await client.end();
  }
}
