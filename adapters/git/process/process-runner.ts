/**
 * Runs processes through the helper, a bounded number at once and each in a group of its own.
 *
 * Must stay true: whatever ends the wait for a process (cancel, timeout, the helper's death) kills its group; a
 * helper that dies is replaced, and its death fails only the processes it ran.
 */
import type { Socket } from 'node:net';
import { createFairSlots, type FairSlots } from './fair-slots.ts';
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
  /** Collected output is bounded (process-protocol.ts): for answers of a few lines. */
  readonly stdout: 'collect' | 'stream';
  /** Whose turn it is: waiting keys are served in rotation. */
  readonly key: string;
  /** From the start to the exit. */
  readonly wallMsMax: number;
  readonly signal?: AbortSignal;
  /** Called once, when a NUL appears on standard error. */
  readonly onNul?: () => void;
}

/** How a process ended. `lost` when the helper died under it; `killed` when we ended it, and why. */
export interface ProcessEnd extends HelperExit {
  readonly killed: 'no' | 'cancelled' | 'timeout' | 'lost';
}

export interface RunningProcess {
  /** Known once it started. */
  readonly pid: number;
  /** Null unless asked for. Ending it is the process's end of input; its errors (EPIPE) are the caller's. */
  readonly stdin: Socket | null;
  readonly stdout: Socket | null;
  /** Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  kill(): void;
}

export interface ProcessRunner {
  /** Waits for a free place, then starts. Rejects when it cannot start, or the signal aborts before. */
  run(options: RunOptions): Promise<RunningProcess>;
  /** Kills what runs and ends the helper. */
  close(): Promise<void>;
}

export interface ProcessRunnerOptions extends HelperOptions {
  readonly processesMax: number;
  readonly processesPerKeyMax: number;
}

export function createProcessRunner(options: ProcessRunnerOptions): ProcessRunner {
  const slots: FairSlots = createFairSlots({ slots: options.processesMax, slotsPerKey: options.processesPerKeyMax });
  const alive = keepAlive();
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
    run: async (asked) => {
      const giveBack = await slots.acquire(asked.key, asked.signal);
      const letGo = alive();
      const release = () => {
        letGo();
        giveBack();
      };
      try {
        lastId += 1;
        return await start(current(), lastId, asked, release);
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

/** Keeps this process running while processes of ours do, and no longer: the helper alone does not. */
function keepAlive(): () => () => void {
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

async function start(helper: Helper, id: number, asked: RunOptions, release: () => void): Promise<RunningProcess> {
  const { signal } = asked;
  const control = await helper.control;
  signal?.throwIfAborted();
  const count = Number(asked.stdin === 'stream') + Number(asked.stdout === 'stream');
  const connections = await takeConnections(helper, count);
  if (signal?.aborted) {
    returnConnections(helper, connections);
    throw signal.reason;
  }
  const stdout = asked.stdout === 'stream' ? (connections.pop() ?? null) : null;
  const stdin = connections.pop() ?? null;
  const process = follow(helper, control, id, asked, release, [stdin, stdout]);
  send(control, {
    kind: 'spawn',
    id,
    file: asked.file,
    args: asked.args,
    cwd: asked.cwd,
    env: asked.env,
    stdin: stdin?.number ?? null,
    stdout: stdout?.number ?? null,
    reportNul: asked.onNul !== undefined,
  });
  const pid = await process.started;
  const { ended, kill } = process;
  return { pid, stdin: stdin?.socket ?? null, stdout: stdout?.socket ?? null, ended, kill };
}

/** Sees to it that a process ends when it is cancelled or takes too long, and tells how it ended. */
function follow(
  helper: Helper,
  control: Socket,
  id: number,
  asked: RunOptions,
  release: () => void,
  connections: readonly (DataConnection | null)[],
): { readonly started: Promise<number>; readonly ended: Promise<ProcessEnd>; kill(): void } {
  const { promise: ended, resolve: resolveEnded } = Promise.withResolvers<ProcessEnd>();
  const { promise: started, resolve, reject } = Promise.withResolvers<number>();
  let killed: ProcessEnd['killed'] = 'no';
  const hangUp = () => {
    for (const connection of connections) connection?.socket.destroy();
  };
  const kill = (why: 'cancelled' | 'timeout') => {
    if (!helper.running.has(id)) return;
    killed = why;
    send(control, { kind: 'kill', id });
    hangUp();
  };
  const cancel = () => kill('cancelled');
  const timer = setTimeout(() => kill('timeout'), asked.wallMsMax);
  asked.signal?.addEventListener('abort', cancel, { once: true });
  const settle = () => {
    helper.running.delete(id);
    clearTimeout(timer);
    asked.signal?.removeEventListener('abort', cancel);
    release();
  };
  helper.running.set(id, {
    pid: null,
    resolve,
    reject: (error) => {
      settle();
      hangUp();
      reject(error);
    },
    finish: (end) => {
      settle();
      if (end === 'lost') resolveEnded({ code: null, signal: null, killed: 'lost', stderr: '', stdout: null });
      else resolveEnded({ ...end, killed });
    },
    onNul: asked.onNul,
  });
  return { started, ended, kill: cancel };
}

function send(control: Socket, request: HelperRequest): void {
  if (control.writable) control.write(`${JSON.stringify(request)}\n`);
}
