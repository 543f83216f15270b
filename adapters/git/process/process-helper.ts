/**
 * A small process that starts git for the server: a fork blocks its caller in proportion to the caller's memory
 * (57 ms at 2 GB), so the server itself never forks. Started by helper-process.ts, under limits that git inherits.
 *
 * Invariants: each process leads a process group of its own; when the control connection ends, however the server
 * ended, the helper kills every group and exits.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { connect, type Socket } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import { dirname } from 'node:path';
import { createMemoryWatch, LOOK_INTERVAL_MS, type MemoryWatch } from './memory-watch.ts';
import {
  COLLECTED_OUTPUT_BYTES_MAX,
  CONTROL_HELLO,
  DATA_HELLO,
  type HelperReport,
  type HelperRequest,
  IDLE_CONNECTIONS,
  lineSplitter,
  type SpawnRequest,
  STDERR_HALF_BYTES,
} from './process-protocol.ts';

/** How long the rest of a group may keep standard error open after its leader exited, before it is killed too. */
const STRAGGLER_GRACE_MS = 100;
const RECONNECT_INTERVAL_MS = 50;
const OWN_NICENESS = getPriority();
/** The greatest niceness that a process has. Internal: it is a figure of the operating system. */
const NICENESS_MAX = 19;

const SIGNALS = { kill: 'SIGKILL', pause: 'SIGSTOP', resume: 'SIGCONT' } as const;

/** Connections kept ready for the input and output of processes. A new one replaces each that is taken. */
class DataConnections {
  readonly #socketPath: string;
  readonly #idle = new Map<number, Socket>();
  #opened = 0;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
    for (let index = 0; index < IDLE_CONNECTIONS; index += 1) this.#open();
  }

  /** Takes out the connection of this number for one process. */
  take(number: number | null): Socket | null {
    if (number === null) return null;
    const socket = this.#idle.get(number);
    this.#idle.delete(number);
    this.#open();
    if (socket === undefined) throw new Error(`There is no idle connection ${number}`);
    return socket;
  }

  #open(): void {
    this.#opened += 1;
    const number = this.#opened;
    const socket = connect(this.#socketPath);
    let isConnected = false;
    socket.once('connect', () => {
      isConnected = true;
    });
    // Paused before it connects, so that the helper reads no byte that is meant for git.
    socket.pause();
    socket.on('error', () => {
      this.#idle.delete(number);
      // The socket's folder was deleted. The server creates it again when it needs connections.
      if (!isConnected) setTimeout(() => this.#open(), RECONNECT_INTERVAL_MS);
    });
    socket.write(`${DATA_HELLO}${number}\n`);
    this.#idle.set(number, socket);
  }
}

function serve(socketPath: string): void {
  const running = new Map<number, ChildProcess>();

  // The limit on processor time is meant for git, for which exec(2) restores the default handling of this signal.
  process.on('SIGXCPU', () => {});

  const control = connect(socketPath);
  control.setEncoding('utf8');
  control.write(`${CONTROL_HELLO}\n`);
  const report = (message: HelperReport) => {
    if (control.writable) control.write(`${JSON.stringify(message)}\n`);
  };
  const shutDown = () => {
    for (const child of running.values()) killGroup(child);
    // The server may have had no time to remove it.
    rmSync(dirname(socketPath), { recursive: true, force: true });
    process.exit(0);
  };
  control.on('error', shutDown);
  control.on('close', shutDown);
  control.on('end', shutDown);

  const connections = new DataConnections(socketPath);
  const watch = createMemoryWatch();
  const start = (request: SpawnRequest) => {
    const { id } = request;
    try {
      const child = startProcess(
        request,
        connections.take(request.stdin),
        connections.take(request.stdout),
        report,
        watch,
      );
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
      else signalGroup(running.get(request.id), SIGNALS[request.kind]);
    }),
  );
}

function startProcess(
  request: SpawnRequest,
  stdin: Socket | null,
  stdout: Socket | null,
  report: (message: HelperReport) => void,
  watch: MemoryWatch,
): ChildProcess {
  const { id } = request;
  const stdio: StdioOptions = [stdin ?? 'ignore', stdout ?? 'pipe', 'pipe'];
  const child = spawn(request.file, [...request.args], {
    cwd: request.cwd,
    env: { ...request.env },
    stdio,
    detached: true,
  });
  // The child has its own copies. While the helper's are open, the server does not see the end of a stream.
  stdin?.destroy();
  stdout?.destroy();
  child.once('error', (error) => report({ kind: 'failed', id, message: error.message }));
  if (child.pid === undefined) return child;
  const gaveWay = giveWay(child.pid, request);
  report({ kind: 'started', id, pid: child.pid });
  let outgrown = false;
  const unwatch = watch(child.pid, request.memoryBytesMax, () => {
    outgrown = true;
    killGroup(child);
  });
  const errors = keepStartAndEnd(STDERR_HALF_BYTES);
  let awaitsNul = request.reportNul;
  child.stderr?.on('data', (chunk: Buffer) => {
    errors.add(chunk);
    if (!awaitsNul || !chunk.includes(0)) return;
    awaitsNul = false;
    report({ kind: 'nul', id });
  });
  const output = keepStartAndEnd(COLLECTED_OUTPUT_BYTES_MAX / 2);
  child.stdout?.on('data', (chunk: Buffer) => {
    output.add(chunk);
    if (output.isCut()) killGroup(child);
  });
  child.once('exit', () => {
    unwatch();
    clearTimeout(gaveWay);
    const stragglers = setTimeout(() => killGroup(child), STRAGGLER_GRACE_MS);
    child.once('close', () => clearTimeout(stragglers));
  });
  child.once('close', (code, signal) => {
    const collected = output.isCut() ? null : output.text();
    report({ kind: 'exited', id, code, signal, stderr: withoutControls(errors.text()), stdout: collected, outgrown });
  });
  return child;
}

/**
 * What the process starts later inherits it. A watched process starts no others: it gives way from the first look on,
 * so that a small push, which ends before, is as fast as it can be.
 */
function giveWay(pid: number, { niceness, memoryBytesMax }: SpawnRequest): NodeJS.Timeout | undefined {
  if (niceness > 0 && memoryBytesMax !== null) return setTimeout(() => lower(pid, niceness), LOOK_INTERVAL_MS);
  if (niceness > 0) lower(pid, niceness);
  return undefined;
}

function lower(pid: number, niceness: number): void {
  try {
    setPriority(pid, Math.min(OWN_NICENESS + niceness, NICENESS_MAX));
  } catch (error) {
    // ESRCH: it has ended already. EACCES: it gives way further than that.
    if (!(error instanceof Error && 'code' in error)) throw error;
  }
}

/** Kills a process and all it started. */
function killGroup(child: ChildProcess | undefined): void {
  signalGroup(child, 'SIGKILL');
}

/** Signals a process and all it started. No other group has its id yet: it still has members, or an unreaped leader. */
function signalGroup(child: ChildProcess | undefined, signal: NodeJS.Signals): void {
  if (child?.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/**
 * Leaves out control characters, so that no pattern that reads git's messages meets one: git itself writes none into a
 * message, but a NUL between two of them (git index-pack --report-end-of-input).
 */
function withoutControls(messages: string): string {
  return messages.replace(/[^\P{Cc}\t\n]+/gu, '');
}

interface StartAndEnd {
  add(chunk: Buffer): void;
  /** Whether bytes between the two were dropped. */
  isCut(): boolean;
  text(): string;
}

/** Keeps the first and the last `halfBytes` bytes of a stream. */
function keepStartAndEnd(halfBytes: number): StartAndEnd {
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  let dropped = false;
  return {
    add: (chunk) => {
      const missing = halfBytes - head.length;
      if (missing > 0) head = Buffer.concat([head, chunk.subarray(0, missing)]);
      if (chunk.length <= missing) return;
      const rest = Buffer.concat([tail, chunk.subarray(Math.max(missing, 0))]);
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
// Written now, because the helper mostly ends by a signal, when it is too late.
flushCompileCache();
