/**
 * One process helper as the server sees it: its connections, and the processes it runs.
 *
 * Invariants: when the helper dies, the server kills every process it ran, and nothing waits for it any longer.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MemoryGroup } from './memory-group.ts';
import { CONTROL_HELLO, DATA_HELLO, type HelperReport, lineSplitter } from './process-protocol.ts';
import { makeSocketFolder, socketPathIn } from './socket-folder.ts';

/** Limits of every process (setrlimit(2)). Processes inherit them from the helper, so that a start costs no more. */
export interface ProcessLimits {
  /** Anonymous memory (RLIMIT_DATA). Below 1 GiB the helper itself does not start: V8 reserves that much. */
  readonly memoryBytesMax: number;
  /** The largest file it may write (RLIMIT_FSIZE). */
  readonly fileBytesMax: number;
  /** Processor time (soft RLIMIT_CPU). */
  readonly cpuSecondsMax: number;
  readonly openFilesMax: number;
}

/** When memory is short, Linux ends git rather than the server or its database: proc_pid_oom_score_adj(5). */
const OOM_SCORE_ADJUSTMENT = 500;
/** How often a caller that waits for connections checks that the socket still exists. */
const SOCKET_CHECK_INTERVAL_MS = 100;

export interface HelperOptions {
  readonly limits: ProcessLimits;
  /** What the helper and all that it starts run in; by default none, and each process has its limits alone. */
  readonly memoryGroup?: MemoryGroup | null;
  /** Used by this runner only, which removes what a killed runner left in it. Created when missing. */
  readonly directory: string;
  /** Called with each line of the helper's standard error, which is empty unless the helper fails. */
  readonly onHelperLine: (line: string) => void;
}

export class ProcessStartError extends Error {
  override readonly name = 'ProcessStartError';
}

export type HelperExit = Omit<Extract<HelperReport, { readonly kind: 'exited' }>, 'kind' | 'id'>;

/** A process that the server requested, and the callbacks for the helper's reports about it. */
export interface RequestedProcess {
  readonly resolve: (pid: number) => void;
  readonly reject: (error: Error) => void;
  readonly finish: (end: HelperExit | 'lost') => void;
  readonly onNul: (() => void) | undefined;
  pid: number | null;
}

export interface Helper {
  readonly child: ChildProcess;
  readonly control: Promise<Socket>;
  readonly idle: Map<number, Socket>;
  readonly waiters: (() => void)[];
  readonly running: Map<number, RequestedProcess>;
  readonly folder: string;
  readonly server: Server;
  /** Creates the socket again if its folder was deleted. */
  readonly restoreSocket: () => void;
  dead: boolean;
}

/** Starts a helper; `control` resolves when it has connected. Nothing here keeps the server's process running. */
export function startHelper(options: HelperOptions): Helper {
  const folder = makeSocketFolder(options.directory);
  const socketPath = socketPathIn(folder);
  const { promise: control, resolve, reject } = Promise.withResolvers<Socket>();
  // Each start of a process awaits it. This handler only keeps a rejection from counting as unhandled before that.
  control.catch(() => {});
  const idle = new Map<number, Socket>();
  const waiters: (() => void)[] = [];
  const server = createServer((socket) => acceptConnection(helper, socket, resolve));
  // The socket exists as soon as listen() returns, before the helper can connect to it.
  const listen = () => void server.listen(socketPath).unref();
  listen();
  const restoreSocket = () => {
    if (existsSync(socketPath)) return;
    server.close();
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    listen();
  };
  const child = spawnHelper(options, socketPath);
  const helper: Helper = {
    child,
    control,
    idle,
    waiters,
    running: new Map(),
    folder,
    server,
    restoreSocket,
    dead: false,
  };

  const markDead = (reason: string) => {
    if (helper.dead) return;
    helper.dead = true;
    reject(new ProcessStartError(reason));
    cleanUpAfter(helper);
  };
  server.once('error', (error) => markDead(`The process helper cannot be reached: ${error.message}`));
  child.once('error', (error) => markDead(`The process helper did not start: ${error.message}`));
  child.once('exit', (code, signal) => markDead(`The process helper ended (${signal ?? code})`));
  child.stderr?.setEncoding('utf8').on('data', lineSplitter(options.onHelperLine));
  child.unref();
  if (child.stderr instanceof Socket) child.stderr.unref();
  return helper;
}

/** Reads the first line of a connection from the helper: it is the control connection, or one for a process's data. */
function acceptConnection(helper: Helper, socket: Socket, onControl: (control: Socket) => void): void {
  const { idle, waiters } = helper;
  socket.unref();
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
        lineSplitter((line) => handleReport(helper, JSON.parse(line) as HelperReport)),
      );
      onControl(socket);
    }
  };
  // The other end closes when its process ends: the user of the connection learns that from the process.
  socket.on('error', () => {});
  socket.on('data', listen);
}

/**
 * A limit that the system refuses, because a stricter hard limit is already set, is left as it is. A group that cannot
 * be joined any more is done without.
 */
function spawnHelper(options: HelperOptions, socketPath: string): ChildProcess {
  const { limits } = options;
  const ulimits = [
    '-c 0',
    `-n ${limits.openFilesMax}`,
    `-d ${Math.floor(limits.memoryBytesMax / 1024)}`,
    `-f ${Math.floor(limits.fileBytesMax / 512)}`,
    `-S -t ${limits.cpuSecondsMax}`,
  ];
  const oomScore = `{ echo ${OOM_SCORE_ADJUSTMENT} > /proc/self/oom_score_adj; } 2>/dev/null || :`;
  const joinGroup = `{ echo $$ > "$1"; } 2>/dev/null || :; shift`;
  const script = `${oomScore}; ${joinGroup}; ${ulimits.map((ulimit) => `ulimit ${ulimit} 2>/dev/null || :`).join('; ')}; exec "$@"`;
  const program = fileURLToPath(new URL('./process-helper.ts', import.meta.url));
  // Before 24.3, Node warns on standard error that type stripping is experimental.
  const node = [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    '--max-old-space-size=64',
    '--max-semi-space-size=1',
    program,
    socketPath,
  ];
  // Detached, so that a Ctrl-C at the server's terminal reaches only the server.
  return spawn('/bin/sh', ['-c', script, 'sh', options.memoryGroup?.joinFile ?? '', ...node], {
    detached: true,
    // Caches the compiled code: without it the type stripper makes the helper a third larger, and its forks slower.
    env: { NODE_COMPILE_CACHE: join(options.directory, 'compiled') },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

function handleReport(helper: Helper, report: HelperReport): void {
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
      const { code, signal, stderr, stdout, outgrown } = report;
      started.finish({ code, signal, stderr, stdout, outgrown });
      return;
    }
  }
}

/** Fails what a dead helper ran, and kills the process groups that it can no longer kill. */
function cleanUpAfter(helper: Helper): void {
  for (const started of helper.running.values()) {
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

export async function endHelper(helper: Helper): Promise<void> {
  const gone = new Promise<void>((resolve) => helper.child.once('exit', () => resolve()));
  // Perhaps nothing else keeps this process running until the helper has ended.
  helper.child.ref();
  helper.child.kill('SIGTERM');
  await gone;
}

export interface DataConnection {
  readonly number: number;
  readonly socket: Socket;
}

/** Takes all connections together: processes that each took one and waited for another would wait without end. */
export async function takeConnections(helper: Helper, count: number): Promise<DataConnection[]> {
  while (helper.idle.size < count && !helper.dead) {
    helper.restoreSocket();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, SOCKET_CHECK_INTERVAL_MS);
      helper.waiters.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
  if (helper.dead) throw new ProcessStartError('The process helper died');
  const taken: DataConnection[] = [];
  for (const [number, socket] of helper.idle) {
    if (taken.length === count) break;
    helper.idle.delete(number);
    // A connection in use keeps the server's process running: its data may arrive after the git process ended.
    taken.push({ number, socket: socket.ref() });
  }
  return taken;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/** Returns unused connections to the idle ones. */
export function returnConnections(helper: Helper, connections: readonly DataConnection[]): void {
  for (const { number, socket } of connections) helper.idle.set(number, socket.unref());
}
