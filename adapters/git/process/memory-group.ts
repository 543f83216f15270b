/**
 * A control group that bounds the memory of all git processes together, where the system lets this server make one:
 * each process has limits of its own, but many that are far below them can still take all that the machine has.
 *
 * Invariants: the process helper joins before it runs, and what it starts is born in the group, so that no start
 * costs more. A group that cannot be made changes nothing but a line of the log. Only groups of this server and of dead
 * ones are removed, and only empty ones can be. Beyond the bound the kernel ends the largest process of the group, and
 * none outside of it.
 */
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmdirSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ControlGroup, ownControlGroups } from './control-groups.ts';
import { delegatedFolder } from './delegated-group.ts';
import { isAlive } from './socket-folder.ts';

/**
 * The share of the machine's memory, or of what the server's own group may have, that git gets.
 *
 * What admission lets git take is no smaller bound: the 96 slots of fetches, of 2.5 GiB a process, are 240 GiB, and
 * pushes, reads and archives come on top; that is beyond three quarters of any machine below 320 GiB. The limits are
 * there for single processes that need much, and what passes alone must pass. So git may have all but a quarter, which
 * holds the server (400 MB), its database and what else the machine runs. The page cache of what git reads and writes
 * counts as well, but leaves before any process is ended.
 */
const GIT_SHARE = 0.75;
const PAGE_BYTES = 4_096;
/** How long the last processes of a group may take to end, until it is left to the sweep of the next start. */
const EMPTY_WAIT_MS = 2_000;
const EMPTY_INTERVAL_MS = 20;
const LIMIT_FILES = { 1: 'memory.limit_in_bytes', 2: 'memory.max' } as const;

export interface MemoryGroup {
  readonly folder: string;
  /** A process joins by writing its id to it. */
  readonly joinFile: string;
  readonly bytesMax: number;
  /** Whether a process is in it. */
  isInUse(): boolean;
  /** Waits for the end of its processes, which must be under way; a group that does not become empty stays. */
  remove(): Promise<void>;
}

export interface NoMemoryGroup {
  /** Why, for the log. */
  readonly none: string;
}

/** Makes a group for this process's git. `proc` is where proc(5) is mounted. */
export function makeMemoryGroup(proc = '/proc'): MemoryGroup | NoMemoryGroup {
  const groups = ownControlGroups(proc);
  // A controller is in one hierarchy: that of version 1 which names it, or else that of version 2.
  const own =
    groups.find(({ controllers }) => controllers.includes('memory')) ?? groups.find(({ version }) => version === 2);
  if (own === undefined) return { none: 'this system has no control groups' };
  try {
    const parent = own.version === 1 ? own.folder : delegatedFolder(own, proc);
    const prefix = `strata-git-${idSpace(proc)}-`;
    sweep(parent, prefix);
    return newGroup(parent, prefix, own);
  } catch (error) {
    return { none: error instanceof Error ? error.message : String(error) };
  }
}

function newGroup(parent: string, prefix: string, own: ControlGroup): MemoryGroup {
  const limitFile = LIMIT_FILES[own.version];
  const memoryBytes = Math.min(totalmem(), leastBound(parent, own.mountPoint, limitFile));
  const bytesMax = Math.floor((memoryBytes * GIT_SHARE) / PAGE_BYTES) * PAGE_BYTES;
  const folder = mkdtempSync(join(parent, `${prefix}${process.pid}-`));
  const joinFile = join(folder, 'cgroup.procs');
  try {
    writeFileSync(join(folder, limitFile), String(bytesMax));
  } catch (error) {
    rmdirSync(folder);
    throw error;
  }
  return {
    folder,
    joinFile,
    bytesMax,
    isInUse: () => textOf(joinFile).trim() !== '',
    remove: async () => {
      for (
        let waitedMs = 0;
        removeUnlessBusy(folder) === 'busy' && waitedMs < EMPTY_WAIT_MS;
        waitedMs += EMPTY_INTERVAL_MS
      ) {
        await sleep(EMPTY_INTERVAL_MS);
      }
    },
  };
}

/** The least of the bounds of a group and of those above it. */
function leastBound(folder: string, mountPoint: string, limitFile: string): number {
  // `max` of version 2, and no file at the top of the hierarchy: no bound.
  const text = textOf(join(folder, limitFile)).trim();
  const bytes = /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  if (folder === mountPoint || dirname(folder) === folder) return bytes;
  return Math.min(bytes, leastBound(dirname(folder), mountPoint, limitFile));
}

/**
 * Removes what killed servers left. A process id says nothing about one of another namespace, so the name holds both.
 */
function sweep(parent: string, prefix: string): void {
  for (const name of readdirSync(parent)) {
    const pid = name.startsWith(prefix) ? /^(\d+)-[A-Za-z0-9]{6}$/.exec(name.slice(prefix.length))?.[1] : undefined;
    if (pid !== undefined && !isAlive(Number(pid))) removeUnlessBusy(join(parent, name));
  }
}

/** `4026531836` of `pid:[4026531836]`: pid_namespaces(7). */
function idSpace(proc: string): string {
  return readlinkSync(join(proc, 'self/ns/pid')).replace(/\D/g, '');
}

/** Removes a group, unless processes are in it. */
function removeUnlessBusy(folder: string): 'busy' | 'done' {
  try {
    rmdirSync(folder);
    return 'done';
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EBUSY' ? 'busy' : 'done';
  }
}

/** Returns '' for a file that is gone, or was never there. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}
