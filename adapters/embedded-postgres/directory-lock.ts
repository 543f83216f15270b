/**
 * One server a data directory.
 *
 * Node has no flock(2), and a lock file that is removed when its owner died can be removed twice by two that
 * look at once. So locks are numbered: the holder is the owner of the highest number, a new one is made by
 * link(2), which only one of many can do, and the highest number is never removed, only emptied.
 *
 * Must stay true: whoever made number n+1 saw n free, and found no higher number afterwards. Numbers below the
 * highest are removed by its holder alone, so a slow rival cannot make a number that was passed long ago.
 */
import { randomUUID } from 'node:crypto';
import { link, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { EmbeddedPostgresError, systemCode } from './error.ts';
import { processFacts } from './process-facts.ts';

const LOCK_NAME = /^lock\.(\d+)$/;
const DRAFT_NAME = /^lock\.draft-/;

export interface DirectoryLock {
  release(): Promise<void>;
}

/**
 * Takes the directory, or throws `data-directory-in-use` with the pid of the server that has it. A holder that
 * died without releasing is passed over.
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const me = await processFacts(process.pid);
  const content = JSON.stringify({ pid: process.pid, started: me?.started ?? '' });
  const draft = path.join(directory, `lock.draft-${randomUUID()}`);
  await writeFile(draft, content, { mode: 0o600 });
  try {
    for (;;) {
      const { highest } = await lockNumbers(directory);
      if (highest > 0) await refuseIfHeld(directory, highest);
      const mine = highest + 1;
      if (!(await linkIfAbsent(draft, lockPath(directory, mine)))) continue;
      const { highest: highestNow, lower } = await lockNumbers(directory);
      if (highestNow > mine) {
        await rm(lockPath(directory, mine), { force: true });
        continue;
      }
      for (const number of lower) await rm(lockPath(directory, number), { force: true });
      return { release: () => writeFile(lockPath(directory, mine), '') };
    }
  } finally {
    await rm(draft, { force: true });
  }
}

/** Removes what a server that died while taking the lock left behind; only its holder may. */
export async function sweepLockDrafts(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (DRAFT_NAME.test(name)) await rm(path.join(directory, name), { force: true });
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

async function refuseIfHeld(directory: string, number: number): Promise<void> {
  const owner = parseOwner(await readFile(lockPath(directory, number), 'utf8').catch(absentAsEmpty));
  if (owner === null) return;
  const facts = await processFacts(owner.pid);
  if (facts === null || facts.zombie || facts.started !== owner.started) return;
  throw new EmbeddedPostgresError(
    'data-directory-in-use',
    `The server with pid ${owner.pid} runs on ${directory}. Stop it, or give this one another data directory.`,
  );
}

/** Null for a lock that was released, or whose text did not survive a crash of the machine. */
function parseOwner(text: string): { pid: number; started: string } | null {
  const match = /^\{"pid":(\d+),"started":"([^"]*)"\}$/.exec(text);
  return match === null ? null : { pid: Number(match[1]), started: match[2] ?? '' };
}

function absentAsEmpty(error: unknown): string {
  if (systemCode(error) === 'ENOENT') return '';
  throw error;
}

async function linkIfAbsent(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  }
}
