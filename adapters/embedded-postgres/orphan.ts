/**
 * What a server that was killed leaves running: its PostgreSQL, which is stopped before a new one starts.
 *
 * Must stay true: only a process that is PostgreSQL on this very directory is ever sent a signal, since the id in
 * postmaster.pid may belong to any other program by now. The caller holds the directory's lock.
 */
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../core/ports/log.ts';
import { EmbeddedPostgresError, systemCode } from './error.ts';

/** What the machine says about a process id; null when there is none. A zombie is not alive. */
export type ProcessFacts = (pid: number) => Promise<{ readonly zombie: boolean; readonly commandLine: string } | null>;

/** A fast shutdown writes what is in memory; then an immediate one, which the next start recovers from. */
const FAST_SHUTDOWN_SPAN_MS = 30_000;
const IMMEDIATE_SHUTDOWN_SPAN_MS = 10_000;
const LOOK_INTERVAL_MS = 20;

/** Stops an orphan on this cluster, or removes a postmaster.pid that names another program. */
export async function clearOrphan(cluster: string, processFacts: ProcessFacts, log: Log): Promise<void> {
  const pidFile = path.join(cluster, 'postmaster.pid');
  const pid = await readPid(pidFile);
  if (pid === null) return;
  const facts = await processFacts(pid);
  if (facts === null || facts.zombie || !isPostgresOn(facts.commandLine, cluster)) {
    // PostgreSQL itself would refuse to start while any process of its user has this id. Orphaned backends, which
    // the file also stands for, hold the shared memory that PostgreSQL finds by the directory.
    await rm(pidFile, { force: true });
    return;
  }
  log.warn({ pid, cluster }, 'Stopping the PostgreSQL that an earlier server left behind');
  await stopPostgres(pid, async () => {
    const now = await processFacts(pid);
    return now !== null && !now.zombie;
  });
}

/** Stops PostgreSQL: fast, then immediate. Throws `start-failed` when it outlives both. */
export async function stopPostgres(pid: number, alive: () => Promise<boolean>): Promise<void> {
  // pg_ctl(1): SIGINT is a fast shutdown, SIGQUIT an immediate one.
  for (const [signal, spanMs] of [
    ['SIGINT', FAST_SHUTDOWN_SPAN_MS],
    ['SIGQUIT', IMMEDIATE_SHUTDOWN_SPAN_MS],
  ] as const) {
    sendSignal(pid, signal);
    const end = performance.now() + spanMs;
    while (performance.now() < end) {
      if (!(await alive())) return;
      await sleep(LOOK_INTERVAL_MS);
    }
  }
  throw new EmbeddedPostgresError('start-failed', `PostgreSQL with pid ${pid} does not stop. End it by hand.`);
}

function sendSignal(pid: number, signal: 'SIGINT' | 'SIGQUIT'): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (systemCode(error) === 'ESRCH') return;
    throw new EmbeddedPostgresError('start-failed', `PostgreSQL with pid ${pid} cannot be stopped by this user.`, {
      cause: error,
    });
  }
}

/** The postmaster keeps the command line we gave it; only its children change theirs. */
function isPostgresOn(commandLine: string, cluster: string): boolean {
  const [program = ''] = commandLine.split(' -D ');
  return path.basename(program) === 'postgres' && commandLine.includes(` -D ${cluster} `);
}

async function readPid(pidFile: string): Promise<number | null> {
  try {
    const [first = ''] = (await readFile(pidFile, 'utf8')).split('\n');
    return /^\d+$/.test(first) ? Number(first) : null;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw error;
  }
}
