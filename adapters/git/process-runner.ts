/**
 * Runs processes through the helper, a bounded number at once and each in a group of its own.
 *
 * Must stay true: whatever ends the wait for a process (cancel, timeout, the helper's death) kills its group; a
 * helper that dies is replaced, and its death fails only the processes it ran.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { createFairSlots, type FairSlots } from './fair-slots.ts';
import { CONTROL_HELLO, DATA_HELLO, type HelperReport, type HelperRequest, lineSplitter } from './process-protocol.ts';
import { makeSocketFolder, socketPathIn, sweepSocketFolders } from './socket-folder.ts';

/** Bounds of every process, by setrlimit(2): inherited from the helper, so that they cost nothing a start. */
export interface ProcessLimits {
  /** Anonymous memory (RLIMIT_DATA). Below 1 GiB the helper itself does not start: V8 reserves that much. */
  readonly memoryBytesMax: number;
  /** The largest file it may write (RLIMIT_FSIZE). */
  readonly fileBytesMax: number;
  /** Processor time (soft RLIMIT_CPU). */
  readonly cpuSecondsMax: number;
  readonly openFilesMax: number;
}

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
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
  readonly killed: 'no' | 'cancelled' | 'timeout' | 'lost';
  readonly stderr: string;
  /** What was collected; null for a stream, or when there was more than may be. */
  readonly stdout: string | null;
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

export interface ProcessRunnerOptions {
  readonly limits: ProcessLimits;
  readonly processesMax: number;
  readonly processesPerKeyMax: number;
  /** Of this runner alone: what a killed one left in it is removed. Made when missing. */
  readonly directory: string;
  /** What the helper says on its standard error: nothing, unless it fails. */
  readonly onHelperLine: (line: string) => void;
}

export class ProcessStartError extends Error {
  override readonly name = 'ProcessStartError';
}

interface Started {
  readonly resolve: (pid: number) => void;
  readonly reject: (error: Error) => void;
  readonly finish: (end: Omit<ProcessEnd, 'killed'> | 'lost') => void;
  readonly onNul: (() => void) | undefined;
  pid: number | null;
}

/** One life of the helper. */
interface Helper {
  readonly child: ChildProcess;
  readonly control: Promise<Socket>;
  readonly idle: Map<number, Socket>;
  readonly waiters: (() => void)[];
  readonly running: Map<number, Started>;
  readonly folder: string;
  readonly server: Server;
  dead: boolean;
}

export function createProcessRunner(options: ProcessRunnerOptions): ProcessRunner {
  const slots: FairSlots = createFairSlots({ slots: options.processesMax, slotsPerKey: options.processesPerKeyMax });
  let helper: Helper | null = null;
  let closed = false;
  let lastId = 0;
  sweepSocketFolders(options.directory);

  const current = (): Helper => {
    if (closed) throw new ProcessStartError('The process runner is closed');
    if (helper === null || helper.dead) helper = startHelper(options);
    return helper;
  };

  const run = async (asked: RunOptions): Promise<RunningProcess> => {
    const release = await slots.acquire(asked.key, asked.signal);
    try {
      lastId += 1;
      return await start(current(), lastId, asked, release);
    } catch (error) {
      release();
      throw error;
    }
  };

  return {
    run,
    close: async () => {
      closed = true;
      if (helper !== null && !helper.dead) await endHelper(helper);
    },
  };
}

async function start(helper: Helper, id: number, asked: RunOptions, release: () => void): Promise<RunningProcess> {
  const control = await helper.control;
  const connections = await takeConnections(
    helper,
    Number(asked.stdin === 'stream') + Number(asked.stdout === 'stream'),
  );
  const stdout = asked.stdout === 'stream' ? (connections.pop() ?? null) : null;
  const stdin = connections.pop() ?? null;
  asked.signal?.throwIfAborted();
  let killed: ProcessEnd['killed'] = 'no';
  const { promise: ended, resolve: resolveEnded } = Promise.withResolvers<ProcessEnd>();
  const { promise: started, resolve, reject } = Promise.withResolvers<number>();
  const kill = (why: 'cancelled' | 'timeout') => {
    if (!helper.running.has(id)) return;
    killed = why;
    send(control, { kind: 'kill', id });
    stdin?.socket.destroy();
    stdout?.socket.destroy();
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
      stdin?.socket.destroy();
      stdout?.socket.destroy();
      reject(error);
    },
    finish: (end) => {
      settle();
      if (end === 'lost') resolveEnded({ code: null, signal: null, killed: 'lost', stderr: '', stdout: null });
      else resolveEnded({ ...end, killed });
    },
    onNul: asked.onNul,
  });
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
  const pid = await started;
  return { pid, stdin: stdin?.socket ?? null, stdout: stdout?.socket ?? null, ended, kill: cancel };
}

function startHelper(options: ProcessRunnerOptions): Helper {
  const folder = makeSocketFolder(options.directory);
  const socketPath = socketPathIn(folder);
  const { promise: control, resolve, reject } = Promise.withResolvers<Socket>();
  // Whoever starts a process awaits it; here it must only not count as unhandled.
  control.catch(() => {});
  const idle = new Map<number, Socket>();
  const waiters: (() => void)[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => greet(socket));
  // Bound at once: the helper cannot be faster than that.
  server.listen(socketPath);
  const child = spawnHelper(options, socketPath);
  const helper: Helper = { child, control, idle, waiters, running: new Map(), folder, server, dead: false };

  const greet = (socket: Socket) => {
    let hello = '';
    const listen = (chunk: Buffer) => {
      hello += chunk.toString('latin1');
      if (!hello.endsWith('\n')) return;
      socket.off('data', listen);
      if (hello.startsWith(DATA_HELLO)) {
        socket.pause();
        socket.once('close', () => idle.delete(number));
        const number = Number(hello.slice(DATA_HELLO.length));
        idle.set(number, socket);
        for (const waiter of waiters.splice(0)) waiter();
      } else if (hello === `${CONTROL_HELLO}\n`) {
        socket.setEncoding('utf8');
        socket.on(
          'data',
          lineSplitter((line) => hear(helper, JSON.parse(line) as HelperReport)),
        );
        resolve(socket);
      }
    };
    // The other end goes when its process does: whoever uses the connection hears of that from the process.
    socket.on('error', () => {});
    socket.on('data', listen);
  };
  const bury = (why: string) => {
    if (helper.dead) return;
    helper.dead = true;
    reject(new ProcessStartError(why));
    buryHelper(helper);
  };
  child.once('error', (error) => bury(`The process helper did not start: ${error.message}`));
  child.once('exit', (code, signal) => bury(`The process helper ended (${signal ?? code})`));
  child.stderr?.setEncoding('utf8').on('data', lineSplitter(options.onHelperLine));
  return helper;
}

/** Each bound that the system refuses (a stricter hard limit stands already) is left as it is. */
function spawnHelper(options: ProcessRunnerOptions, socketPath: string): ChildProcess {
  const { limits } = options;
  const bounds = [
    '-c 0',
    `-n ${limits.openFilesMax}`,
    `-d ${Math.floor(limits.memoryBytesMax / 1024)}`,
    `-f ${Math.floor(limits.fileBytesMax / 512)}`,
    `-S -t ${limits.cpuSecondsMax}`,
  ];
  const script = `${bounds.map((bound) => `ulimit ${bound} 2>/dev/null || :`).join('; ')}; exec "$@"`;
  const program = fileURLToPath(new URL('./process-helper.ts', import.meta.url));
  const node = [process.execPath, '--max-old-space-size=64', '--max-semi-space-size=1', program, socketPath];
  // Detached: a Ctrl-C at the server's terminal is the server's to handle.
  return spawn('/bin/sh', ['-c', script, 'sh', ...node], {
    detached: true,
    env: {},
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

function hear(helper: Helper, report: HelperReport): void {
  const started = helper.running.get(report.id);
  if (started === undefined) return;
  switch (report.kind) {
    case 'started':
      started.pid = report.pid;
      started.resolve(report.pid);
      return;
    case 'failed':
      started.reject(new ProcessStartError(report.message));
      return;
    case 'nul':
      started.onNul?.();
      return;
    case 'exited': {
      const { code, signal, stderr, stdout } = report;
      started.finish({ code, signal, stderr, stdout });
      return;
    }
  }
}

/** Fails what a dead helper ran, and kills the groups that it can no longer kill. */
function buryHelper(helper: Helper): void {
  for (const started of [...helper.running.values()]) {
    if (started.pid === null) {
      started.reject(new ProcessStartError('The process helper died before it started the process'));
      continue;
    }
    killGroup(started.pid);
    started.finish('lost');
  }
  for (const socket of helper.idle.values()) socket.destroy();
  for (const waiter of helper.waiters.splice(0)) waiter();
  helper.server.close();
  rmSync(helper.folder, { recursive: true, force: true });
}

async function endHelper(helper: Helper): Promise<void> {
  const gone = new Promise<void>((resolve) => helper.child.once('exit', () => resolve()));
  helper.child.kill('SIGTERM');
  await gone;
}

interface DataConnection {
  readonly number: number;
  readonly socket: Socket;
}

/** All of them at once: processes that each held one and waited for another would wait for ever. */
async function takeConnections(helper: Helper, count: number): Promise<DataConnection[]> {
  while (helper.idle.size < count && !helper.dead) {
    await new Promise<void>((resolve) => helper.waiters.push(resolve));
  }
  if (helper.dead) throw new ProcessStartError('The process helper died');
  const taken: DataConnection[] = [];
  for (const [number, socket] of helper.idle) {
    if (taken.length === count) break;
    taken.push({ number, socket });
    helper.idle.delete(number);
  }
  return taken;
}

function send(control: Socket, request: HelperRequest): void {
  if (control.writable) control.write(`${JSON.stringify(request)}\n`);
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
