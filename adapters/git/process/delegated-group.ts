/**
 * Makes room for groups below this server's own control group of version 2: cgroups(7), "no internal processes".
 *
 * Invariants: a process of somebody else is never moved. A group may have either processes or groups with
 * controllers of their own, so the server's processes go to a leaf; this happens only in a group that the server may
 * write and has alone, as systemd's Delegate= gives it.
 */
import { accessSync, appendFileSync, constants, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { ControlGroup } from './control-groups.ts';

/** Where the server's own processes are; the name to give in systemd's DelegateSubgroup=. */
const LEAF = 'server';
/** A process may be started while the others move. Internal: only the start of the server reaches it. */
const ROUNDS_MAX = 3;

/** The folder below which a group with a bound on its memory can be made; throws with the reason when there is none. */
export function delegatedFolder(own: ControlGroup, proc: string): string {
  const isInLeaf = own.folder !== own.mountPoint && basename(own.folder) === LEAF;
  const folder = isInLeaf ? dirname(own.folder) : own.folder;
  if (!wordsOf(join(folder, 'cgroup.controllers')).includes('memory')) {
    throw new Error('the memory of its control group is not delegated to it');
  }
  const control = join(folder, 'cgroup.subtree_control');
  for (const path of [folder, join(folder, 'cgroup.procs'), control]) accessSync(path, constants.W_OK);
  if (wordsOf(control).includes('memory')) return folder;
  for (let round = 1; ; round += 1) {
    moveToLeaf(folder, proc);
    try {
      appendFileSync(control, '+memory');
      return folder;
    } catch (error) {
      if (codeOf(error) !== 'EBUSY' || round === ROUNDS_MAX) throw error;
    }
  }
}

function moveToLeaf(folder: string, proc: string): void {
  const pids = wordsOf(join(folder, 'cgroup.procs')).map(Number);
  if (!pids.every((pid) => isOwn(pid, proc))) throw new Error('its control group holds processes of others');
  if (pids.length === 0) return;
  const leaf = join(folder, LEAF);
  mkdirSync(leaf, { recursive: true });
  for (const pid of pids) {
    try {
      appendFileSync(join(leaf, 'cgroup.procs'), `${pid}\n`);
    } catch (error) {
      // It has ended since.
      if (codeOf(error) !== 'ESRCH') throw error;
    }
  }
}

/** Whether it is this process or one below it. One of another namespace shows as 0. */
function isOwn(pid: number, proc: string): boolean {
  if (pid === process.pid) return true;
  if (pid <= 1) return false;
  try {
    // `pid (command) state parent`; the command may hold any character: proc_pid_stat(5).
    const stat = readFileSync(join(proc, String(pid), 'stat'), 'latin1');
    return isOwn(Number(/^.*\) \S (\d+) /s.exec(stat)?.[1] ?? 0), proc);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ESRCH') throw error;
    // It has ended, so that nothing is moved.
    return true;
  }
}

function wordsOf(file: string): readonly string[] {
  return readFileSync(file, 'latin1').split(/\s+/).filter(Boolean);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
