/**
 * One life of the process helper, seen from the server: its connections, and what it runs.
 *
 * Must stay true: when it dies, whatever it ran is failed and killed, and nothing waits for it any more.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CONTROL_HELLO, DATA_HELLO, type HelperReport, lineSplitter } from './process-protocol.ts';
import { makeSocketFolder, socketPathIn } from './socket-folder.ts';

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

/** While connections are waited for, the socket is looked after. */
const LOOK_INTERVAL_MS = 100;

export interface HelperOptions {
  readonly limits: ProcessLimits;
  /** Of this runner alone: what a killed one left in it is removed. Made when missing. */
  readonly directory: string;
  /** What the helper says on its standard error: nothing, unless it fails. */
  readonly onHelperLine: (line: string) => void;
}

export class ProcessStartError extends Error {
  override readonly name = 'ProcessStartError';
}

export type HelperExit = Omit<Extract<HelperReport, { readonly kind: 'exited' }>, 'kind' | 'id'>;

/** What is to be told of a process that was asked for. */
export interface Started {
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
  readonly running: Map<number, Started>;
  readonly folder: string;
  readonly server: Server;
  /** Puts the socket back where its folder was deleted. */
  readonly stayReachable: () => void;
  dead: boolean;
}

/** Starts it; `control` resolves when it is connected. Nothing of it keeps this process running. */
export function startHelper(options: HelperOptions): Helper {
  const folder = makeSocketFolder(options.directory);
  const socketPath = socketPathIn(folder);
  const { promise: control, resolve, reject } = Promise.withResolvers<Socket>();
  // Whoever starts a process awaits it; here it must only not count as unhandled.
  control.catch(() => {});
  const idle = new Map<number, Socket>();
  const waiters: (() => void)[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => greet(socket));
  // Bound at once: the helper cannot be faster than that.
  const listen = () => void server.listen(socketPath).unref();
  listen();
  const stayReachable = () => {
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
    stayReachable,
    dead: false,
  };

  const greet = (socket: Socket) => {
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
  server.once('error', (error) => bury(`The process helper cannot be reached: ${error.message}`));
  child.once('error', (error) => bury(`The process helper did not start: ${error.message}`));
  child.once('exit', (code, signal) => bury(`The process helper ended (${signal ?? code})`));
  child.stderr?.setEncoding('utf8').on('data', lineSplitter(options.onHelperLine));
  child.unref();
  if (child.stderr instanceof Socket) child.stderr.unref();
  return helper;
}

/** Each bound that the system refuses (a stricter hard limit stands already) is left as it is. */
function spawnHelper(options: HelperOptions, socketPath: string): ChildProcess {
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
    // Its code compiled and kept: without this the stripper of types makes the helper a third larger, and forks slower.
    env: { NODE_COMPILE_CACHE: join(options.directory, 'compiled') },
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

export async function endHelper(helper: Helper): Promise<void> {
  const gone = new Promise<void>((resolve) => helper.child.once('exit', () => resolve()));
  // Nothing else may be left that keeps this process running until then.
  helper.child.ref();
  helper.child.kill('SIGTERM');
  await gone;
}

export interface DataConnection {
  readonly number: number;
  readonly socket: Socket;
}

/** All of them at once: processes that each held one and waited for another would wait for ever. */
export async function takeConnections(helper: Helper, count: number): Promise<DataConnection[]> {
  while (helper.idle.size < count && !helper.dead) {
    helper.stayReachable();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LOOK_INTERVAL_MS);
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
    // In use it keeps this process running: what it brings may come after the process ended.
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

/** Puts connections back that were not used. */
export function returnConnections(helper: Helper, connections: readonly DataConnection[]): void {
  for (const { number, socket } of connections) helper.idle.set(number, socket.unref());
}
