/**
 * A small process that starts git for the server: a fork blocks its caller in proportion to the caller's memory
 * (57 ms at 2 GB), so the server itself never forks. Run by process-runner.ts, under limits that git inherits.
 *
 * Must stay true: each process leads a group of its own; when the control connection ends, however the server
 * ended, every group is killed and the helper leaves.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import {
  COLLECTED_OUTPUT_BYTES_MAX,
  CONTROL_HELLO,
  DATA_HELLO,
  type HelperReport,
  type HelperRequest,
  IDLE_CONNECTIONS,
  lineSplitter,
  STDERR_HALF_BYTES,
  type SpawnRequest,
} from './process-protocol.ts';

/** How long a dead leader's group may hold standard error open before it is killed too. */
const STRAGGLER_GRACE_MS = 100;
const RECONNECT_INTERVAL_MS = 50;

function serve(socketPath: string): void {
  const running = new Map<number, ChildProcess>();
  const idle = new Map<number, Socket>();
  let connections = 0;

  // The limit on processor time is meant for git, which starts with default signal handling after exec(2).
  process.on('SIGXCPU', () => {});

  const control = connect(socketPath);
  control.setEncoding('utf8');
  control.write(`${CONTROL_HELLO}\n`);
  const report = (message: HelperReport) => {
    if (control.writable) control.write(`${JSON.stringify(message)}\n`);
  };
  const leave = () => {
    for (const child of running.values()) killGroup(child);
    // The server may have had no time to.
    rmSync(dirname(socketPath), { recursive: true, force: true });
    process.exit(0);
  };
  control.on('error', leave);
  control.on('close', leave);
  control.on('end', leave);

  const openConnection = () => {
    connections += 1;
    const number = connections;
    const socket = connect(socketPath);
    let isConnected = false;
    socket.once('connect', () => {
      isConnected = true;
    });
    // Paused before it connects, so that not a byte meant for git is read here.
    socket.pause();
    socket.on('error', () => {
      idle.delete(number);
      // The socket's folder was deleted: the server makes it again when it needs connections.
      if (!isConnected) setTimeout(openConnection, RECONNECT_INTERVAL_MS);
    });
    socket.write(`${DATA_HELLO}${number}\n`);
    idle.set(number, socket);
  };
  const take = (number: number | null): Socket | null => {
    if (number === null) return null;
    const socket = idle.get(number);
    idle.delete(number);
    openConnection();
    if (socket === undefined) throw new Error(`There is no idle connection ${number}`);
    return socket;
  };
  for (let index = 0; index < IDLE_CONNECTIONS; index += 1) openConnection();

  const start = (request: SpawnRequest) => {
    const { id } = request;
    try {
      const child = startProcess(request, take(request.stdin), take(request.stdout), report);
      running.set(id, child);
      child.once('close', () => running.delete(id));
      child.once('error', () => running.delete(id));
    } catch (error) {
      report({ kind: 'failed', id, message: error instanceof Error ? error.message : String(error) });
    }
  };
  control.on(
    'data',
    lineSplitter((line) => {
      const request = JSON.parse(line) as HelperRequest;
      if (request.kind === 'spawn') start(request);
      else killGroup(running.get(request.id));
    }),
  );
}

function startProcess(
  request: SpawnRequest,
  stdin: Socket | null,
  stdout: Socket | null,
  report: (message: HelperReport) => void,
): ChildProcess {
  const { id } = request;
  const stdio: StdioOptions = [stdin ?? 'ignore', stdout ?? 'pipe', 'pipe'];
  const child = spawn(request.file, [...request.args], {
    cwd: request.cwd,
    env: { ...request.env },
    stdio,
    detached: true,
  });
  // The child has its copies; ours would keep the other end from seeing the end.
  stdin?.destroy();
  stdout?.destroy();
  child.once('error', (error) => report({ kind: 'failed', id, message: error.message }));
  if (child.pid === undefined) return child;
  report({ kind: 'started', id, pid: child.pid });
  const errors = keepEnds(STDERR_HALF_BYTES);
  let awaitsNul = request.reportNul;
  child.stderr?.on('data', (chunk: Buffer) => {
    errors.add(chunk);
    if (!awaitsNul || !chunk.includes(0)) return;
    awaitsNul = false;
    report({ kind: 'nul', id });
  });
  const output = keepEnds(COLLECTED_OUTPUT_BYTES_MAX / 2);
  child.stdout?.on('data', (chunk: Buffer) => {
    output.add(chunk);
    if (output.isCut()) killGroup(child);
  });
  child.once('exit', () => {
    const stragglers = setTimeout(() => killGroup(child), STRAGGLER_GRACE_MS);
    child.once('close', () => clearTimeout(stragglers));
  });
  child.once('close', (code, signal) => {
    const collected = output.isCut() ? null : output.text();
    report({ kind: 'exited', id, code, signal, stderr: errors.text(), stdout: collected });
  });
  return child;
}

/** Kills a process with all it started. Its number is still its own: the group has members or is unreaped. */
function killGroup(child: ChildProcess | undefined): void {
  if (child?.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

interface KeptEnds {
  add(chunk: Buffer): void;
  /** Whether anything was left out. */
  isCut(): boolean;
  text(): string;
}

/** Keeps the first and the last bytes of a stream, in bounded memory. */
function keepEnds(halfBytes: number): KeptEnds {
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  let dropped = false;
  return {
    add: (chunk) => {
      const room = halfBytes - head.length;
      if (room > 0) head = Buffer.concat([head, chunk.subarray(0, room)]);
      if (chunk.length <= room) return;
      const rest = Buffer.concat([tail, chunk.subarray(Math.max(room, 0))]);
      dropped ||= rest.length > halfBytes;
      tail = Buffer.from(rest.subarray(Math.max(0, rest.length - halfBytes)));
    },
    isCut: () => dropped,
    text: () => `${head.toString('utf8')}${dropped ? '\n…\n' : ''}${tail.toString('utf8')}`,
  };
}

const socketPath = process.argv[2];
if (socketPath === undefined) throw new TypeError('Usage: process-helper.ts <socket>');
serve(socketPath);
// It mostly ends by a signal, too late for this.
flushCompileCache();
