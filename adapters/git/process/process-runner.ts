/**
 * Runs processes through the helper, a bounded number at the same time, each in a process group of its own.
 *
 * Invariants: cancelling a process, its timeout and the death of its helper kill its whole group; a helper that
 * dies is replaced, and its death fails only the processes it ran.
 */
import type { Socket } from 'node:net';
import { createFairSlots, type FairSlots } from '../../../core/kernel/fair-slots.ts';
import { ReaderTooSlow } from '../../../core/kernel/reader-too-slow.ts';
import {
  type DataConnection,
  endHelper,
  type Helper,
  type HelperExit,
  type HelperOptions,
  ProcessStartError,
  returnConnections,
  startHelper,
  takeConnections,
} from './helper-process.ts';
import type { HelperRequest } from './process-protocol.ts';
import { watchProcessorTime } from './processor-time.ts';
import { sweepSocketFolders } from './socket-folder.ts';

export interface RunOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: { readonly [name: string]: string };
  readonly stdin: 'none' | 'stream';
  /** Collected output is bounded (process-protocol.ts): for commands that print a few lines. */
  readonly stdout: 'collect' | 'stream';
  /** Who the process runs for, such as an account. Waiting keys are served in rotation. */
  readonly key: string;
  /** Slots to take one from, instead of the runner's own. */
  readonly slots?: FairSlots;
  /** The longest time from the start to the exit. */
  readonly wallMsMax: number;
  readonly signal?: AbortSignal;
  /** Called once, when a NUL appears on standard error. */
  readonly onNul?: () => void;
  /** How far the process gives way to others (nice(1)); by default not at all. */
  readonly niceness?: number;
  /**
   * It is killed, and its end says `outgrown`, when it takes more memory of its own; by default only at its hard limit.
   */
  readonly memoryBytesMax?: number;
  /**
   * It is killed as at its timeout when it has taken more processor time than this returns, which is asked again and
   * again.
   */
  readonly cpuMsMax?: () => number;
}

/** How a process ended. `killed` is why the runner killed it, `lost` if the helper died first, or else `no`. */
export interface ProcessEnd extends HelperExit {
  readonly killed: 'no' | 'cancelled' | 'timeout' | 'lost';
}

export interface RunningProcess {
  readonly pid: number;
  /** Null unless streamed. Ending it ends the process's standard input. The caller handles its errors (EPIPE). */
  readonly stdin: Socket | null;
  readonly stdout: Socket | null;
  /** Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  kill(): void;
  /** Stops it, with all it started, until `resume` or `kill`. Its time goes on. */
  pause(): void;
  resume(): void;
  /**
   * Says that from now on the process waits for a slow reader: it leaves its slot for one of those that are kept for
   * such. Rejects with ReaderTooSlow when none is free in time; does nothing for a process with slots of its own.
   */
  pace(): Promise<void>;
}

export interface ProcessRunner {
  /** Waits for a free slot, then starts the process. Rejects when it cannot start, or the signal aborts first. */
  run(options: RunOptions): Promise<RunningProcess>;
  /** Ends the helper, which kills every process that runs, and removes the group that they ran in. */
  close(): Promise<void>;
}

export interface ProcessRunnerOptions extends HelperOptions {
  /** The bounds of processes without slots of their own. A quarter of them only write at the pace of slow readers. */
  readonly processesMax: number;
  readonly processesPerKeyMax: number;
  /** How long a process waits for a slot among those; by default 30 seconds. */
  readonly pacedWaitMs?: number;
}

/** Slots for slow readers, and those kept for keys with little to do: of all processes. */
const PACED_SHARE = 0.25;
const KEPT_SHARE = 0.25;
/** Slots for slow readers that one key may have. Internal: a further process keeps its slot. */
const PACED_PER_KEY_MAX = 2;
/** A key with fewer processes may take one of the slots that are kept. */
const FEW_PROCESSES = 4;
const PACED_WAIT_MS = 30_000;

export function createProcessRunner(options: ProcessRunnerOptions): ProcessRunner {
  const { shared, paced } = createSlots(options);
  const keepServerRunning = createKeepRunning();
  let helper: Helper | null = null;
  let closed = false;
  let lastId = 0;
  sweepSocketFolders(options.directory);

  const current = (): Helper => {
    if (closed) throw new ProcessStartError('The process runner is closed');
    if (helper === null || helper.dead) helper = startHelper(options);
    return helper;
  };

  return {
    run: async (requested) => {
      const { slots = shared, key, signal } = requested;
      const slot = createMovableSlot(await slots.acquire(key, signal));
      const allowExit = keepServerRunning();
      const release = () => {
        allowExit();
        slot.release();
      };
      const pace = async () => {
        if (slots === shared) await slot.moveTo(paced, key, options.pacedWaitMs ?? PACED_WAIT_MS);
      };
      try {
        lastId += 1;
        return { ...(await start(current(), lastId, requested, release)), pace };
      } catch (error) {
        release();
        throw error;
      }
    },
    close: async () => {
      closed = true;
      if (helper !== null && !helper.dead) await endHelper(helper);
      await options.memoryGroup?.remove();
    },
  };
}

function createSlots({ processesMax, processesPerKeyMax }: ProcessRunnerOptions): {
  readonly shared: FairSlots;
  readonly paced: FairSlots;
} {
  const pacedMax = Math.floor(processesMax * PACED_SHARE);
  const slots = processesMax - pacedMax;
  const kept = { slots: Math.floor(processesMax * KEPT_SHARE), slotsPerKey: FEW_PROCESSES };
  return {
    shared: createFairSlots({ slots, slotsPerKey: processesPerKeyMax, kept }),
    paced: createFairSlots({ slots: Math.max(1, pacedMax), slotsPerKey: PACED_PER_KEY_MAX }),
  };
}

interface MovableSlot {
  /** Idempotent. */
  release(): void;
  /** Takes a slot of others, then gives back the one it has. The first call moves it. */
  moveTo(others: FairSlots, key: string, waitMs: number): Promise<void>;
}

function createMovableSlot(first: () => void): MovableSlot {
  let releaseHeld = first;
  let moving: Promise<void> | null = null;
  const over = new AbortController();
  const move = async (others: FairSlots, key: string, waitMs: number) => {
    const tooLate = new AbortController();
    const timer = setTimeout(() => tooLate.abort(), waitMs);
    try {
      const taken = await others.acquire(key, AbortSignal.any([over.signal, tooLate.signal]));
      if (over.signal.aborted) return taken();
      releaseHeld();
      releaseHeld = taken;
    } catch (cause) {
      // A process that has ended needs no slot.
      if (over.signal.aborted) return;
      throw new ReaderTooSlow('Too many processes wait for slow readers', { cause });
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    release: () => {
      over.abort();
      releaseHeld();
    },
    moveTo: (others, key, waitMs) => (moving ??= move(others, key, waitMs)),
  };
}

/** Keeps the server's process running while a process of the runner runs. The helper alone does not keep it running. */
function createKeepRunning(): () => () => void {
  const holders = new Set<object>();
  let timer: NodeJS.Timeout | null = null;
  return () => {
    const holder = {};
    holders.add(holder);
    timer ??= setInterval(() => {}, 2 ** 30);
    return () => {
      holders.delete(holder);
      if (holders.size > 0 || timer === null) return;
      clearInterval(timer);
      timer = null;
    };
  };
}

async function start(
  helper: Helper,
  id: number,
  requested: RunOptions,
  release: () => void,
): Promise<Omit<RunningProcess, 'pace'>> {
  const { signal } = requested;
  const control = await helper.control;
  signal?.throwIfAborted();
  const count = Number(requested.stdin === 'stream') + Number(requested.stdout === 'stream');
  const connections = await takeConnections(helper, count);
  if (signal?.aborted) {
    returnConnections(helper, connections);
    throw signal.reason;
  }
  const stdout = requested.stdout === 'stream' ? (connections.pop() ?? null) : null;
  const stdin = connections.pop() ?? null;
  const process = superviseProcess(helper, control, id, requested, release, [stdin, stdout]);
  send(control, {
    kind: 'spawn',
    id,
    file: requested.file,
    args: requested.args,
    cwd: requested.cwd,
    env: requested.env,
    stdin: stdin?.number ?? null,
    stdout: stdout?.number ?? null,
    reportNul: requested.onNul !== undefined,
    niceness: requested.niceness ?? 0,
    memoryBytesMax: requested.memoryBytesMax ?? null,
  });
  const pid = await process.started;
  const { ended, kill } = process;
  const signalling = (kind: 'pause' | 'resume') => () => {
    if (helper.running.has(id)) send(control, { kind, id });
  };
  const controls = { kill, pause: signalling('pause'), resume: signalling('resume') };
  return { pid, stdin: stdin?.socket ?? null, stdout: stdout?.socket ?? null, ended, ...controls };
}

/** Kills a process when it is cancelled or takes too long, and resolves `ended` with how it ended. */
function superviseProcess(
  helper: Helper,
  control: Socket,
  id: number,
  requested: RunOptions,
  release: () => void,
  [stdin, stdout]: readonly [stdin: DataConnection | null, stdout: DataConnection | null],
): { readonly started: Promise<number>; readonly ended: Promise<ProcessEnd>; kill(): void } {
  const { promise: ended, resolve: resolveEnded } = Promise.withResolvers<ProcessEnd>();
  const { promise: started, resolve, reject } = Promise.withResolvers<number>();
  let killed: ProcessEnd['killed'] = 'no';
  const closeConnections = () => {
    for (const connection of [stdin, stdout]) connection?.socket.destroy();
  };
  const kill = (reason: 'cancelled' | 'timeout') => {
    if (helper.running.has(id)) {
      killed = reason;
      send(control, { kind: 'kill', id });
    }
    // Also of a process that has ended: what it wrote may wait for a reader who does not come.
    closeConnections();
  };
  const cancel = () => kill('cancelled');
  const timer = setTimeout(() => kill('timeout'), requested.wallMsMax);
  let unwatch: (() => void) | null = null;
  requested.signal?.addEventListener('abort', cancel, { once: true });
  const settle = () => {
    helper.running.delete(id);
    clearTimeout(timer);
    unwatch?.();
    requested.signal?.removeEventListener('abort', cancel);
    release();
  };
  helper.running.set(id, {
    pid: null,
    resolve: (pid) => {
      const { cpuMsMax } = requested;
      if (cpuMsMax !== undefined) unwatch = watchProcessorTime(pid, cpuMsMax, () => kill('timeout'));
      resolve(pid);
    },
    reject: (error) => {
      settle();
      closeConnections();
      reject(error);
    },
    finish: (end) => {
      settle();
      // Nobody reads from this end of its input, so nothing else would tell that the other end is gone.
      stdin?.socket.destroy();
      if (end === 'lost')
        resolveEnded({ code: null, signal: null, killed: 'lost', stderr: '', stdout: null, outgrown: false });
      else resolveEnded({ ...end, killed });
    },
    onNul: requested.onNul,
  });
  return { started, ended, kill: cancel };
}

function send(control: Socket, request: HelperRequest): void {
  if (control.writable) control.write(`${JSON.stringify(request)}\n`);
}
