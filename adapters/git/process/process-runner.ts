/**
 * Runs processes through the helper, a bounded number at once, each in a process group of its own.
 *
 * Must stay true: cancelling a process, its timeout and the death of its helper kill its whole group; a helper that
 * dies is replaced, and its death fails only the processes it ran.
 */
import type { Socket } from 'node:net';
import { createFairSlots, type FairSlots } from '../../../core/kernel/fair-slots.ts';
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
import { sweepSocketFolders } from './socket-folder.ts';

export interface RunOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: { readonly [name: string]: string };
  readonly stdin: 'none' | 'stream';
  /** Collected output is bounded (process-protocol.ts): for commands that print a few lines. */
  readonly stdout: 'collect' | 'stream';
  /** Waiting keys are served in rotation. */
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
  /** It is killed, and its end says `outgrown`, when it takes more memory of its own; by default only at its hard limit. */
  readonly memoryBytesMax?: number;
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
}

export interface ProcessRunner {
  /** Waits for a free slot, then starts the process. Rejects when it cannot start, or the signal aborts first. */
  run(options: RunOptions): Promise<RunningProcess>;
  /** Ends the helper, which kills every process that runs. */
  close(): Promise<void>;
}

export interface ProcessRunnerOptions extends HelperOptions {
  /** Of those without slots of their own. */
  readonly processesMax: number;
  readonly processesPerKeyMax: number;
}

export function createProcessRunner(options: ProcessRunnerOptions): ProcessRunner {
  const slots: FairSlots = createFairSlots({ slots: options.processesMax, slotsPerKey: options.processesPerKeyMax });
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
      const releaseSlot = await (requested.slots ?? slots).acquire(requested.key, requested.signal);
      const allowExit = keepServerRunning();
      const release = () => {
        allowExit();
        releaseSlot();
      };
      try {
        lastId += 1;
        return await start(current(), lastId, requested, release);
      } catch (error) {
        release();
        throw error;
      }
    },
    close: async () => {
      closed = true;
      if (helper !== null && !helper.dead) await endHelper(helper);
    },
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

async function start(helper: Helper, id: number, requested: RunOptions, release: () => void): Promise<RunningProcess> {
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
  requested.signal?.addEventListener('abort', cancel, { once: true });
  const settle = () => {
    helper.running.delete(id);
    clearTimeout(timer);
    requested.signal?.removeEventListener('abort', cancel);
    release();
  };
  helper.running.set(id, {
    pid: null,
    resolve,
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
