/**
 * A server's processes as one group: started, counted and ended together.
 *
 * Must stay true: only processes of the group are ever signalled, each by its id. CPU time counts every process the
 * server ever started when a cgroup can be made (v1 cpuacct or v2); else /proc is summed over the tree, which misses
 * children that nobody waited for (fcgiwrap ignores SIGCHLD), and the result says so.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export type Accounting = 'cgroup v1' | 'cgroup v2' | '/proc';

export interface ProcessGroup {
  readonly accounting: Accounting;
  /** Starts a program whose every descendant is counted. */
  start(command: string, args: readonly string[], options: SpawnOptions): ChildProcess;
  /** User and system time of all processes so far, in seconds. */
  cpuSeconds(): number;
  pids(): readonly number[];
  /**
   * Waits until the group does next to nothing for a window, so that work put off until after the answer is counted
   * too; false when it still worked at the end of the wait.
   */
  settle(span?: { readonly waitMs: number; readonly windowMs: number }): Promise<boolean>;
  /** Asks the started programs to end, after the grace every process left, and at last kills what is still there. */
  end(): Promise<void>;
}

const PROCFS_TICKS_PER_SECOND = 100;
const TERMINATE_WAIT_MS = 5_000;
/** After a few requests. */
const SETTLE_SPAN = { waitMs: 5_000, windowMs: 150 };
/** A group that uses less than this share of a core is at rest: timers and polls of an idle server. */
const SETTLED_CORES = 0.05;

interface Counter {
  readonly accounting: Accounting;
  /** Null: nothing to join. */
  readonly joinFile: string | null;
  cpuSeconds(): number;
  pids(): readonly number[];
  remove(): void;
}

/**
 * @param graceMs how long the started programs may take to end by themselves and end their children.
 * @param allowCgroup false: /proc even where a cgroup could be made.
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
          : // The shell joins the cgroup before it becomes the program: no descendant can be missed.
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
    // It ended by itself between the listing and the signal.
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
      pids: () => readFileSync(joinFile, 'latin1').split('\n').filter(Boolean).map(Number),
      remove: () => rmdirSync(folder),
    };
  }
  return null;
}

interface CgroupCandidate {
  readonly accounting: Accounting;
  readonly parent: string;
  cpuSeconds(folder: string): number;
}

/** Where this process stands in each hierarchy (cgroups(7), /proc/[pid]/cgroup), below the usual mount points. */
function cgroupCandidates(): readonly CgroupCandidate[] {
  const candidates: CgroupCandidate[] = [];
  for (const line of readText('/proc/self/cgroup').split('\n')) {
    const [, controllers, own] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || own === undefined) continue;
    if (controllers.split(',').includes('cpuacct')) {
      candidates.unshift({
        accounting: 'cgroup v1',
        parent: path.join('/sys/fs/cgroup', controllers, own),
        cpuSeconds: (folder) => Number(readText(path.join(folder, 'cpuacct.usage'))) / 1e9,
      });
    } else if (controllers === '') {
      for (const mount of ['/sys/fs/cgroup', '/sys/fs/cgroup/unified']) {
        candidates.push({
          accounting: 'cgroup v2',
          parent: path.join(mount, own),
          cpuSeconds: (folder) => Number(/usage_usec (\d+)/.exec(readText(path.join(folder, 'cpu.stat')))?.[1]) / 1e6,
        });
      }
    }
  }
  return candidates;
}

function makeFolder(folder: string): boolean {
  try {
    mkdirSync(folder);
    readFileSync(path.join(folder, 'cgroup.procs'));
    return true;
  } catch {
    // Not mounted, or not ours to write: the next candidate, at last /proc, which the result names.
    return false;
  }
}

interface Observed {
  readonly parent: number;
  readonly cpuTicks: number;
  /** With the id, names a process for ever: ids are used again. */
  readonly startTicks: number;
}

function createProcfsCounter(started: readonly ChildProcess[]): Counter {
  // Those seen once stay members when their parent has ended and they belong to another tree.
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

/** Every process but the dead. proc(5): after the command in parentheses stand state, ppid, and from there field 3 on. */
function observeProcesses(): ReadonlyMap<number, Observed> {
  const all = new Map<number, Observed>();
  for (const entry of readdirSync('/proc')) {
    const fields = /^\d+$/.test(entry) ? (readText(`/proc/${entry}/stat`).split(') ').at(-1) ?? '').split(' ') : [];
    if (fields.length < 20 || fields[0] === 'Z') continue;
    all.set(Number(entry), {
      parent: Number(fields[1]),
      // utime, stime, cutime, cstime are fields 14 to 17.
      cpuTicks: fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0),
      startTicks: Number(fields[19]),
    });
  }
  return all;
}

/** Time that all processors spent on anything, in seconds: proc(5), /proc/stat, all but idle and iowait. */
export function machineCpuSeconds(): number {
  const [, ...ticks] = (/^cpu .*$/m.exec(readText('/proc/stat'))?.[0] ?? '').split(/ +/).map(Number);
  // user, nice, system, idle, iowait, irq, softirq, steal; the guests' times after them are in user already.
  return (
    ticks.slice(0, 8).reduce((sum, tick, field) => (field === 3 || field === 4 ? sum : sum + tick), 0) /
    PROCFS_TICKS_PER_SECOND
  );
}

/** A pseudo file's text, or '' when the process or the file has just gone. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    // Processes end while we list them; every caller treats '' as "not there".
    return '';
  }
}
