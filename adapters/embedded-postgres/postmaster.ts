/**
 * One run of the PostgreSQL server process, from its start to its end.
 *
 * Invariants: PostgreSQL is a child of the server in its own session, gets nothing of the server's environment, and
 * writes its log to a file, since a pipe would break when the server ends. The log holds no statement and no value.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile, rename, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Log } from '../../core/ports/log.ts';
import { type ClusterPaths, processEnvironment } from './cluster.ts';
import { EmbeddedPostgresError, systemCode } from './error.ts';
import { stopPostgres } from './orphan.ts';
import type { UnixUser } from './unix-user.ts';

/**
 * A longer log file of PostgreSQL is set aside at the next start. Internal: no request writes or reads the log of
 * PostgreSQL.
 */
const LOG_SIZE_BYTES_MAX = 1024 * 1024;

const LOG_TAIL_LENGTH = 2_000;
const PROBE_INTERVAL_MS = 15;
const PROBE_SPAN_MS = 5_000;
/** Recovery after a crash may take minutes: a slow start is logged this often, and never aborted. */
const SLOW_START_NOTICE_MS = 10_000;
const STILL_STARTING = 'PostgreSQL is still starting: it may be recovering';
/** The backends of a killed postmaster notice its end and exit; until then they hold the shared memory. */
const SHARED_MEMORY_WAIT_MS = 10_000;
const SHARED_MEMORY_IN_USE = /pre-existing shared memory block/;

/** PostgreSQL's configuration for one service on one machine. */
const SETTINGS: Readonly<Record<string, string>> = {
  shared_buffers: '128MB',
  wal_compression: 'on',
  max_wal_size: '1GB',
  checkpoint_timeout: '15min',
  io_method: 'sync',
  jit: 'off',
  // Parallel plans need more of /dev/shm than the 64 MB that a container has by default.
  max_parallel_workers_per_gather: '0',
  max_parallel_maintenance_workers: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Statements and error details contain values, which may be personal data (docs/architecture.md, invariant 5).
  log_min_messages: 'warning',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_checkpoints: 'off',
  log_autovacuum_min_duration: '-1',
};

export interface PostmasterOptions {
  readonly binary: string;
  readonly paths: ClusterPaths;
  readonly user: UnixUser | null;
  readonly settings: Readonly<Record<string, string>>;
  /** A connection string to test whether PostgreSQL is ready. */
  readonly probe: string;
  readonly log: Log;
}

export interface Postmaster {
  readonly pid: number;
  /** Resolves with the reason when the process has ended; never rejects. */
  readonly ended: Promise<string>;
  readonly hasEnded: () => boolean;
  stop(): Promise<void>;
}

/** Resolves when PostgreSQL accepts connections. Throws `start-failed`, whose message holds the end of its log. */
export async function spawnPostmaster(options: PostmasterOptions): Promise<Postmaster> {
  const deadline = performance.now() + SHARED_MEMORY_WAIT_MS;
  for (;;) {
    const { child, logStart } = await launch(options);
    const postmaster = asPostmaster(child, options.binary);
    if (await isReady(options, postmaster.hasEnded)) return postmaster;
    const logged = (await readFile(options.paths.logFile, 'utf8')).slice(logStart);
    if (SHARED_MEMORY_IN_USE.test(logged) && performance.now() < deadline) {
      await sleep(PROBE_INTERVAL_MS * 10);
      continue;
    }
    throw new EmbeddedPostgresError(
      'start-failed',
      `PostgreSQL did not start (${await postmaster.ended}): ${logged.slice(-LOG_TAIL_LENGTH).trim()}`,
    );
  }
}

async function launch(options: PostmasterOptions): Promise<{ child: ChildProcess; logStart: number }> {
  const { paths, user } = options;
  const size = await stat(paths.logFile).then((file) => file.size, absentAsZero);
  if (size > LOG_SIZE_BYTES_MAX) await rename(paths.logFile, `${paths.logFile}.old`);
  const logFile = await open(paths.logFile, 'a', 0o600);
  try {
    const settings = Object.entries({ ...SETTINGS, ...options.settings });
    const child = spawn(
      options.binary,
      ['-D', paths.cluster, ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      {
        ...processEnvironment(),
        ...(user === null ? {} : { uid: user.uid, gid: user.gid }),
        detached: true,
        stdio: ['ignore', logFile.fd, logFile.fd],
      },
    );
    return { child, logStart: size > LOG_SIZE_BYTES_MAX ? 0 : size };
  } finally {
    await logFile.close();
  }
}

function asPostmaster(child: ChildProcess, binary: string): Postmaster {
  let exited = false;
  const ended = new Promise<string>((resolve) => {
    const end = (reason: string) => {
      exited = true;
      resolve(reason);
    };
    child.once('error', (error) => end(`${binary}: ${error.message}`));
    child.once('exit', (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  // The child does not keep the server's process alive: a server that ends without `stop` leaves an orphan, which the
  // next one stops.
  child.unref();
  const pid = child.pid ?? 0;
  return {
    pid,
    ended,
    hasEnded: () => exited,
    stop: async () => {
      if (!exited) await stopPostgres(pid, async () => !exited);
    },
  };
}

/**
 * Resolves with true when SELECT 1 succeeds, with false when the process ended before. Recovery looks different from
 * one probe to the next, or says that it recovers: so a failure that stays the same is logged.
 */
async function isReady(options: PostmasterOptions, hasEnded: () => boolean): Promise<boolean> {
  let notice = performance.now() + SLOW_START_NOTICE_MS;
  const failures = new Map<string, Error>();
  while (!hasEnded()) {
    const failure = await probe(options.probe);
    if (failure === null) return true;
    // 28P01 invalid_password, 28000 invalid_authorization: waiting would not help.
    const code = systemCode(failure);
    if (code === '28P01' || code === '28000') {
      throw new EmbeddedPostgresError('cluster-unusable', 'PostgreSQL refuses the password of its superuser', {
        cause: failure,
      });
    }
    failures.set(failure.message, failure);
    if (performance.now() > notice) {
      const [err] = failures.size === 1 ? failures.values() : [];
      const { cluster } = options.paths;
      options.log.warn(err === undefined ? { cluster } : { cluster, err }, STILL_STARTING);
      failures.clear();
      notice = performance.now() + SLOW_START_NOTICE_MS;
    }
    await sleep(PROBE_INTERVAL_MS);
  }
  return false;
}

/** Resolves with null when PostgreSQL answers, else with the reason why it does not. */
async function probe(connectionString: string): Promise<Error | null> {
  const spans = { connectionTimeoutMillis: PROBE_SPAN_MS, query_timeout: PROBE_SPAN_MS };
  const client = new pg.Client({ connectionString, ...spans });
  // Without a listener, an error of a connection that no query waits on would end this process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query({ text: 'SELECT 1' });
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error('The probe failed without an error');
  } finally {
    // `end` waits until the server closes the connection, which a server that just died may never do.
    await Promise.race([client.end(), sleep(PROBE_SPAN_MS, undefined, { ref: false })]);
  }
}

function absentAsZero(error: unknown): number {
  if (systemCode(error) === 'ENOENT') return 0;
  throw error;
}
