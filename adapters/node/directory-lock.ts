/**
 * Lets only one server at a time use a data directory.
 *
 * The process id in the lock shows whether its holder is alive. For a holder in another container, or on another
 * machine that shares the file system, the id means nothing here, but its heartbeat does: it updates the lock file's
 * modification time.
 *
 * Node has no flock(2). A lock file that is removed when its owner died can be removed twice, by two servers that check
 * it at the same time. So locks are numbered. The holder is the owner of the highest number. A new number is made by
 * link(2), which succeeds for one server only. The highest number is never removed, only emptied.
 *
 * Invariants: the server that made number n+1 saw that n was free, and found no higher number afterwards. Only the
 * holder of the highest number removes lower ones, so a slow rival cannot make a number that was passed long ago.
 */
import { randomUUID } from 'node:crypto';
import { link, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { processFacts, processIdSpace } from './process-facts.ts';

const LOCK_NAME = /^lock\.(\d+)$/;
const DRAFT_NAME = /^lock\.draft-/;

const HEARTBEAT_INTERVAL_MS = 1_000;
/** How long to wait for a heartbeat. Network file systems show the modification time seconds late: nfs(5), acregmin. */
const WATCH_SPAN_MS = 6_000;
const WATCH_INTERVAL_MS = 200;

/** Another server uses the directory; the message names it and says what to do. */
export class DirectoryInUseError extends Error {
  override readonly name = 'DirectoryInUseError';
  readonly code = 'data-directory-in-use';
}

export interface DirectoryLock {
  release(): Promise<void>;
}

/**
 * Locks the directory, or throws `DirectoryInUseError` with the pid of the server that has it. Takes over the lock of a
 * holder that died: immediately if it ran here, or after some seconds without a heartbeat if it ran elsewhere.
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const me = await processFacts(process.pid);
  const space = await processIdSpace();
  const content = JSON.stringify({ pid: process.pid, started: me?.started ?? '', space });
  const draft = path.join(directory, `lock.draft-${randomUUID()}`);
  try {
    for (;;) {
      // Written again each time: a server that takes the directory removes the drafts of others.
      await writeFile(draft, content, { mode: 0o600 });
      const { highest } = await lockNumbers(directory);
      if (highest > 0) await refuseIfHeld(directory, highest, space);
      const mine = highest + 1;
      if (!(await linkIfAbsent(draft, lockPath(directory, mine)))) continue;
      const { highest: highestNow, lower } = await lockNumbers(directory);
      if (highestNow > mine) {
        await rm(lockPath(directory, mine), { force: true });
        continue;
      }
      for (const number of lower) await rm(lockPath(directory, number), { force: true });
      await sweepLockDrafts(directory, draft);
      return startHeartbeat(lockPath(directory, mine));
    }
  } finally {
    await rm(draft, { force: true });
  }
}

function startHeartbeat(file: string): DirectoryLock {
  const beat = (): void => {
    const now = new Date();
    // It fails when somebody has removed the directory: then no other server can share its contents.
    utimes(file, now, now).catch(() => undefined);
  };
  const timer = setInterval(beat, HEARTBEAT_INTERVAL_MS).unref();
  return {
    release: () => {
      clearInterval(timer);
      return writeFile(file, '');
    },
  };
}

/** Removes the drafts that servers left when they died. A live rival, whose draft it may remove, writes it again. */
async function sweepLockDrafts(directory: string, mine: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const file = path.join(directory, name);
    if (DRAFT_NAME.test(name) && file !== mine) await rm(file, { force: true });
  }
}

function lockPath(directory: string, number: number): string {
  return path.join(directory, `lock.${number}`);
}

async function lockNumbers(directory: string): Promise<{ highest: number; lower: readonly number[] }> {
  const names = await readdir(directory);
  const numbers = names.flatMap((name) => LOCK_NAME.exec(name)?.[1] ?? []).map(Number);
  const highest = Math.max(0, ...numbers);
  return { highest, lower: numbers.filter((number) => number < highest) };
}

async function refuseIfHeld(directory: string, number: number, space: string): Promise<void> {
  const file = lockPath(directory, number);
  const owner = parseOwner(await readFile(file, 'utf8').catch(absentAsEmpty));
  if (owner === null) return;
  const advice = 'Stop it, or give this one another data directory (STRATA_DATA_DIR).';
  if (owner.space !== space) {
    if (!(await hasHeartbeat(file))) return;
    const where = `in another container or on another machine runs on ${directory}`;
    throw new DirectoryInUseError(`A server with pid ${owner.pid} ${where}. ${advice}`);
  }
  const facts = await processFacts(owner.pid);
  if (facts === null || facts.zombie || facts.started !== owner.started) return;
  throw new DirectoryInUseError(`The server with pid ${owner.pid} runs on ${directory}. ${advice}`);
}

async function hasHeartbeat(file: string): Promise<boolean> {
  const changedMs = async (): Promise<number | null> =>
    stat(file).then(
      ({ mtimeMs }) => mtimeMs,
      (error: unknown) => {
        if (isMissing(error)) return null;
        throw error;
      },
    );
  const before = await changedMs();
  for (let watchedMs = 0; watchedMs < WATCH_SPAN_MS; watchedMs += WATCH_INTERVAL_MS) {
    await sleep(WATCH_INTERVAL_MS);
    if ((await changedMs()) !== before) return true;
  }
  return false;
}

interface Owner {
  readonly pid: number;
  readonly started: string;
  readonly space: string;
}

/** Null for a lock that was released, or whose text was lost in a crash of the machine. */
function parseOwner(text: string): Owner | null {
  const match = /^\{"pid":(\d+),"started":"([^"]*)","space":"([^"]*)"\}$/.exec(text);
  return match === null ? null : { pid: Number(match[1]), started: match[2] ?? '', space: match[3] ?? '' };
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

function absentAsEmpty(error: unknown): string {
  if (isMissing(error)) return '';
  throw error;
}

/** Resolves false when another server was first, or has removed the file to be linked. */
async function linkIfAbsent(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (isMissing(error) || (error instanceof Error && 'code' in error && error.code === 'EEXIST')) return false;
    throw error;
  }
}
