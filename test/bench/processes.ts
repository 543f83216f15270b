/**
 * A server's processes as one group: started, counted and ended together.
 *
 * Invariants: only processes of the group are signalled, each by its id. Where a cgroup can be made (v1 cpuacct or
 * v2), CPU time counts every process that the server ever started. Elsewhere /proc is summed over the tree, which
 * misses children that no parent waited for (fcgiwrap ignores SIGCHLD), and the result says so.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ownControlGroups } from '../../adapters/git/process/control-groups.ts';

export type Accounting = 'cgroup v1' | 'cgroup v2' | '/proc';

export interface ProcessGroup {
  readonly accounting: Accounting;
  /** Starts a program; all its descendants are counted. */
  start(command: string, args: readonly string[], options: SpawnOptions): ChildProcess;
  /** User and system time of all processes so far, in seconds. */
  cpuSeconds(): number;
  pids(): readonly number[];
  /**
   * Waits until the group is nearly idle for a window, so that work deferred until after the answer is counted too.
   * Resolves with false when the group still works at the end of the wait.
   */
  settle(span?: { readonly waitMs: number; readonly windowMs: number }): Promise<boolean>;
  /** Sends SIGTERM to the started programs, after the grace period to every remaining process, and at last SIGKILL. */
  end(): Promise<void>;
}

const PROCFS_TICKS_PER_SECOND = 100;
const TERMINATE_WAIT_MS = 5_000;
/** The wait after a few requests. */
const SETTLE_SPAN = { waitMs: 5_000, windowMs: 150 };
/** A group that uses less than this share of a core counts as idle: an idle server still has timers and polls. */
const SETTLED_CORES = 0.05;

interface Counter {
  readonly accounting: Accounting;
  /** The file that a process writes its id to in order to join; null where there is none. */
  readonly joinFile: string | null;
  cpuSeconds(): number;
  pids(): readonly number[];
  remove(): void;
}

/**
 * Creates a group without processes.
 * @param graceMs how long the started programs may take to end with their children after SIGTERM.
 * @param allowCgroup false: uses /proc even where a cgroup could be made.
 */
export function createProcessGroup(name: string, graceMs: number, allowCgroup = true): ProcessGroup {
  const started: ChildProcess[] = [];
  const cgroup = allowCgroup ? createCgroupCounter(`strata-bench-${process.pid}-${name}`) : null;
  const counter = cgroup ?? createProcfsCounter(started);

  return {
    accounting: counter.accounting,
    start(command, args, options) {
      const child =
        counter.joinFile === null
          ? spawn(command, args, options)
          : // The shell joins the cgroup before it becomes the program, so that every descendant is in it.
            spawn('/bin/sh', ['-c', 'echo $$ > "$0" && exec "$@"', counter.joinFile, command, ...args], options);
      started.push(child);
      return child;
    },
    cpuSeconds: counter.cpuSeconds,
    pids: counter.pids,
    async settle({ waitMs, windowMs } = SETTLE_SPAN) {
      const deadline = performance.now() + waitMs;
      while (performance.now() < deadline) {
        const before = counter.cpuSeconds();
        await delay(windowMs);
        if ((counter.cpuSeconds() - before) * 1000 < SETTLED_CORES * windowMs) return true;
      }
      return false;
    },
    async end() {
      for (const child of started) if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await waitUntilEmpty(counter, graceMs);
      for (const pid of counter.pids()) signal(pid, 'SIGTERM');
      await waitUntilEmpty(counter, TERMINATE_WAIT_MS);
      for (const pid of counter.pids()) signal(pid, 'SIGKILL');
      await waitUntilEmpty(counter, TERMINATE_WAIT_MS);
      counter.remove();
    },
  };
}

async function waitUntilEmpty(counter: Counter, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs;
  while (counter.pids().length > 0 && performance.now() < deadline) await delay(20);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // The process ended between the listing and the signal.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

function createCgroupCounter(name: string): Counter | null {
  for (const candidate of cgroupCandidates()) {
    const folder = path.join(candidate.parent, name);
    if (!makeFolder(folder)) continue;
    const joinFile = path.join(folder, 'cgroup.procs');
    return {
      accounting: candidate.accounting,
      joinFile,
      cpuSeconds: () => candidate.cpuSeconds(folder),
      pids: () => groupsFrom(folder).flatMap(pidsIn),
      remove: () =>
        groupsFrom(folder)
          .toReversed()
          .forEach((each) => rmdirSync(each)),
    };
  }
  return null;
}

/** The group and those that a server made below it, parents first. */
function groupsFrom(folder: string): readonly string[] {
  const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [folder, ...below.flatMap(({ name }) => groupsFrom(path.join(folder, name)))];
}

function pidsIn(folder: string): readonly number[] {
  return readText(path.join(folder, 'cgroup.procs')).split('\n').filter(Boolean).map(Number);
}

interface CgroupCandidate {
  readonly accounting: Accounting;
  readonly parent: string;
  cpuSeconds(folder: string): number;
}

/** Returns the places for a new cgroup: below the one of this process in each hierarchy that counts CPU time. */
function cgroupCandidates(): readonly CgroupCandidate[] {
  const own = ownControlGroups();
  const first = own.filter(({ controllers }) => controllers.includes('cpuacct'));
  const second = own.filter(({ version }) => version === 2);
  return [
    ...first.map(
      ({ folder: parent }): CgroupCandidate => ({
        accounting: 'cgroup v1',
        parent,
        cpuSeconds: (folder) => Number(readText(path.join(folder, 'cpuacct.usage'))) / 1e9,
      }),
    ),
    ...second.map(
      ({ folder: parent }): CgroupCandidate => ({
        accounting: 'cgroup v2',
        parent,
        cpuSeconds: (folder) => Number(/usage_usec (\d+)/.exec(readText(path.join(folder, 'cpu.stat')))?.[1]) / 1e6,
      }),
    ),
  ];
}

function makeFolder(folder: string): boolean {
  try {
    mkdirSync(folder);
    readFileSync(path.join(folder, 'cgroup.procs'));
    return true;
  } catch {
    // The hierarchy is not mounted or not writable: the next candidate is tried, and at last /proc, which the result
    // names.
    return false;
  }
}

interface Observed {
  readonly parent: number;
  readonly cpuTicks: number;
  /** The part of them that is of children which have ended, and that it waited for. */
  readonly endedTicks: number;
  /** Identifies a process together with its id, since ids are reused. */
  readonly startTicks: number;
}

function createProcfsCounter(started: readonly ChildProcess[]): Counter {
  // A process seen once stays a member even when its parent ends and it moves to another tree.
  const known = new Map<number, number>();
  const members = (): ReadonlyMap<number, Observed> => {
    const all = observeProcesses();
    const found = new Map<number, Observed>();
    const add = (pid: number): void => {
      const process = all.get(pid);
      if (process === undefined || found.has(pid)) return;
      found.set(pid, process);
      known.set(pid, process.startTicks);
      for (const [child, { parent }] of all) if (parent === pid) add(child);
    };
    for (const { pid, exitCode } of started) if (pid !== undefined && exitCode === null) add(pid);
    for (const [pid, startTicks] of known) if (all.get(pid)?.startTicks === startTicks) add(pid);
    return found;
  };
  return {
    accounting: '/proc',
    joinFile: null,
    cpuSeconds: () =>
      [...members().values()].reduce((sum, { cpuTicks }) => sum + cpuTicks, 0) / PROCFS_TICKS_PER_SECOND,
    pids: () => [...members().keys()],
    remove: () => undefined,
  };
}

/**
 * Returns every process except zombies. proc(5): after the command in parentheses follow state, ppid and the later
 * fields.
 */
function observeProcesses(): ReadonlyMap<number, Observed> {
  const all = new Map<number, Observed>();
  for (const entry of readdirSync('/proc')) {
    const fields = /^\d+$/.test(entry) ? (readText(`/proc/${entry}/stat`).split(') ').at(-1) ?? '').split(' ') : [];
    if (fields.length < 20 || fields[0] === 'Z') continue;
    all.set(Number(entry), {
      parent: Number(fields[1]),
      // utime, stime, cutime and cstime are fields 14 to 17.
      cpuTicks: fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0),
      endedTicks: Number(fields[13]) + Number(fields[14]),
      startTicks: Number(fields[19]),
    });
  }
  return all;
}

/**
 * Seconds that a process and its descendants have spent so far, with the children that they waited for, but without
 * PostgreSQL's.
 */
export function treeCpuSeconds(root: number): number {
  const all = observeProcesses();
  const childrenOf = Map.groupBy(all.keys(), (pid) => all.get(pid)?.parent ?? 0);
  const ticksOf = (pid: number): number => {
    if (readText(`/proc/${pid}/comm`).trim() === 'postgres') return 0;
    const children = childrenOf.get(pid) ?? [];
    return (all.get(pid)?.cpuTicks ?? 0) + children.reduce((sum, child) => sum + ticksOf(child), 0);
  };
  return ticksOf(root) / PROCFS_TICKS_PER_SECOND;
}

/**
 * Seconds that a PostgreSQL has spent so far: its first process, and those that it started. They have one thread each,
 * so the scheduler's nanoseconds (/proc/<pid>/schedstat) count those that live; those that ended count in ticks.
 */
export function databaseCpuSeconds(root: number): number {
  const all = observeProcesses();
  const family = [...all].filter(([pid, { parent }]) => pid === root || parent === root);
  return family.reduce((sum, [pid, { endedTicks }]) => {
    const nanoseconds = Number(readText(`/proc/${pid}/schedstat`).split(' ')[0] ?? 0);
    return sum + nanoseconds / 1e9 + endedTicks / PROCFS_TICKS_PER_SECOND;
  }, 0);
}

/** Seconds that all processors spent on anything except idle and iowait: proc(5), /proc/stat. */
export function machineCpuSeconds(): number {
  const [, ...ticks] = (/^cpu .*$/m.exec(readText('/proc/stat'))?.[0] ?? '').split(/ +/).map(Number);
  // user, nice, system, idle, iowait, irq, softirq, steal; user includes the guest times that follow.
  return (
    ticks.slice(0, 8).reduce((sum, tick, field) => (field === 3 || field === 4 ? sum : sum + tick), 0) /
    PROCFS_TICKS_PER_SECOND
  );
}

/** Returns a pseudo file's text, or '' when the process or the file no longer exists. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    // Processes end during the listing; every caller treats '' as "not there".
    return '';
  }
}
