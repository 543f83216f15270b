/**
 * Stops the PostgreSQL that a killed server left running, before a new one starts.
 *
 * Invariants: only a process that is PostgreSQL on this very directory gets a signal, since the id in
 * postmaster.pid may belong to another program by now. The caller holds the directory's lock.
 */
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../core/ports/log.ts';
import { EmbeddedPostgresError, systemCode } from './error.ts';

/** Returns what the operating system knows about a process id; null when there is no such process. */
export type ProcessFacts = (pid: number) => Promise<{ readonly zombie: boolean; readonly commandLine: string } | null>;

/** A fast shutdown writes all data to disk. An immediate one, the second attempt, leaves recovery to the next start. */
const FAST_SHUTDOWN_SPAN_MS = 30_000;
const IMMEDIATE_SHUTDOWN_SPAN_MS = 10_000;
const CHECK_INTERVAL_MS = 20;

/** Stops an orphan on this cluster; removes postmaster.pid if its process has ended or is another program. */
export async function clearOrphan(cluster: string, processFacts: ProcessFacts, log: Log): Promise<void> {
  const pidFile = path.join(cluster, 'postmaster.pid');
  const pid = await readPid(pidFile);
  if (pid === null) return;
  const facts = await processFacts(pid);
  if (facts === null || facts.zombie || !isPostgresOn(facts.commandLine, cluster)) {
    // With the file PostgreSQL would refuse to start while any process of its user has this id. Without it PostgreSQL
    // still detects orphaned backends: it finds the shared memory that they hold by the directory.
    await rm(pidFile, { force: true });
    return;
  }
  log.warn({ pid, cluster }, 'Stopping the PostgreSQL that an earlier server left behind');
  await stopPostgres(pid, async () => {
    const now = await processFacts(pid);
    return now !== null && !now.zombie;
  });
}

/** Shuts PostgreSQL down, first fast, then immediately. Throws `start-failed` when it survives both. */
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
      await sleep(CHECK_INTERVAL_MS);
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

/** The postmaster keeps the command line it was started with; only its children change theirs. */
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
