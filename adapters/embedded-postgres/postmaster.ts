/**
 * One run of the PostgreSQL server process, from its start to its end.
 *
 * Must stay true: it is a child of this process in a session of its own, sees none of our environment, and writes
 * its log to a file, since a pipe would break with us. The log holds no statement and no value.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile, rename, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Log } from '../../core/ports/log.ts';
import { type ClusterPaths, processSurroundings } from './cluster.ts';
import { EmbeddedPostgresError, systemCode } from './error.ts';
import { stopPostgres } from './orphan.ts';
import type { UnixUser } from './unix-user.ts';

const LOG_SIZE_BYTES_MAX = 1024 * 1024;
const LOG_TAIL_LENGTH = 2_000;
const PROBE_INTERVAL_MS = 15;
const PROBE_SPAN_MS = 5_000;
/** Recovery after a crash may take minutes; only silence is reported, never cut short while the process lives. */
const SLOW_START_NOTICE_MS = 10_000;
/** Backends of a killed postmaster notice its end by themselves; until then they hold the shared memory. */
const SHARED_MEMORY_WAIT_MS = 10_000;
const SHARED_MEMORY_IN_USE = /pre-existing shared memory block/;

/** PostgreSQL's configuration for one service on one machine. */
const SETTINGS: Readonly<Record<string, string>> = {
  max_connections: '60',
  shared_buffers: '128MB',
  wal_compression: 'on',
  max_wal_size: '1GB',
  checkpoint_timeout: '15min',
  io_method: 'sync',
  jit: 'off',
  // Containers give 64 MB of /dev/shm, which parallel plans would need.
  max_parallel_workers_per_gather: '0',
  max_parallel_maintenance_workers: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Statements and details carry values; values may be personal data (architecture, invariant 5).
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
  /** A connection string that answers once the server is ready. */
  readonly probe: string;
  readonly log: Log;
}

export interface Postmaster {
  readonly pid: number;
  /** Resolves with the reason when the process has ended, for whatever cause. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

/** Starts the process; ready for connections when it resolves. Throws `start-failed` with the end of its log. */
export async function spawnPostmaster(options: PostmasterOptions): Promise<Postmaster> {
  const giveUp = performance.now() + SHARED_MEMORY_WAIT_MS;
  for (;;) {
    const { child, logStart } = await launch(options);
    const postmaster = asPostmaster(child, options.binary);
    let over = false;
    void postmaster.ended.then(() => {
      over = true;
    });
    if (await isReady(options, () => over)) return postmaster;
    const written = (await readFile(options.paths.logFile, 'utf8')).slice(logStart);
    if (SHARED_MEMORY_IN_USE.test(written) && performance.now() < giveUp) {
      await sleep(PROBE_INTERVAL_MS * 10);
      continue;
    }
    throw new EmbeddedPostgresError(
      'start-failed',
      `PostgreSQL did not start (${await postmaster.ended}): ${written.slice(-LOG_TAIL_LENGTH).trim()}`,
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
        ...processSurroundings(),
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
  let over = false;
  const ended = new Promise<string>((resolve) => {
    const end = (reason: string) => {
      over = true;
      resolve(reason);
    };
    child.once('error', (error) => end(`${binary}: ${error.message}`));
    child.once('exit', (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  // Our own end is not held up by it: a server that forgets `stop` leaves an orphan, which the next one clears.
  child.unref();
  const pid = child.pid ?? 0;
  return {
    pid,
    ended,
    stop: async () => {
      if (!over) await stopPostgres(pid, async () => !over);
    },
  };
}

/** True once SELECT 1 answers, false when the process ended before. */
async function isReady(options: PostmasterOptions, isOver: () => boolean): Promise<boolean> {
  let notice = performance.now() + SLOW_START_NOTICE_MS;
  while (!isOver()) {
    const outcome = await probe(options.probe);
    if (outcome === 'ready') return true;
    if (outcome !== 'not-yet') {
      throw new EmbeddedPostgresError('cluster-unusable', 'PostgreSQL refuses our password', { cause: outcome });
    }
    if (performance.now() > notice) {
      options.log.warn({ cluster: options.paths.cluster }, 'PostgreSQL is still starting: it may be recovering');
      notice = performance.now() + SLOW_START_NOTICE_MS;
    }
    await sleep(PROBE_INTERVAL_MS);
  }
  return false;
}

async function probe(connectionString: string): Promise<'ready' | 'not-yet' | Error> {
  const spans = { connectionTimeoutMillis: PROBE_SPAN_MS, query_timeout: PROBE_SPAN_MS };
  const client = new pg.Client({ connectionString, ...spans });
  // A connection that breaks while nobody waits on it says so here, and would else end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query({ text: 'SELECT 1' });
    return 'ready';
  } catch (error) {
    // 28P01 invalid_password, 28000 invalid_authorization: waiting would not help.
    const code = systemCode(error);
    return error instanceof Error && (code === '28P01' || code === '28000') ? error : 'not-yet';
  } finally {
    // The client waits for the other side to hang up, which one that died in the middle may never do.
    await Promise.race([client.end(), sleep(PROBE_SPAN_MS, undefined, { ref: false })]);
  }
}

function absentAsZero(error: unknown): number {
  if (systemCode(error) === 'ENOENT') return 0;
  throw error;
}
