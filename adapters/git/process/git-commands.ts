/**
 * Runs git on a repository's objects: each command in the environment of git-environment.ts, through the helper.
 *
 * Invariants: a command's input and output are streamed with backpressure; a caller that stops reading ends it.
 */
import type { Socket } from 'node:net';
import type { FairSlots } from '../../../core/kernel/fair-slots.ts';
import { ReaderTooSlow } from '../../../core/kernel/reader-too-slow.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { BackgroundWork } from './background-work.ts';
import { type ConfigPairs, checkGitVersion, type Environment, findGit, gitEnvironment } from './git-environment.ts';
import { ProcessStartError } from './helper-process.ts';
import type { ProcessEnd, ProcessRunner, RunningProcess } from './process-runner.ts';

/** Which objects a command sees. */
export interface ObjectView {
  /**
   * Resolves with GIT_DIR and, for a quarantine, the object directories, once everything that git is to see there is on
   * the disk. Called before each start.
   */
  readonly variables: () => Promise<Environment>;
  /** Whose processes run over it, the account: waiting processes take turns by this key. */
  readonly key: string;
}

export interface GitCommand {
  readonly args: readonly string[];
  readonly view: ObjectView;
  readonly config?: ConfigPairs;
  readonly variables?: Environment;
  readonly signal?: AbortSignal;
  /** The longest time from the start to the exit; by default 60 minutes. */
  readonly wallMsMax?: number;
  /** Stricter limits than those of every process. Such a process also gives way to other git processes (nice(1)). */
  readonly limits?: OwnLimits;
  /** The last argument, for a command with `limits`: the others are texts, and a path need not be one. */
  readonly lastArgument?: Uint8Array;
  /** Slots to take one from, instead of those that all processes share. */
  readonly slots?: FairSlots;
  /** The memory beyond which it is killed and its end says `outgrown`; by default its hard limit holds alone. */
  readonly memoryBytesMax?: number;
  /**
   * The processor time beyond which it is killed as at its timeout; asked again while it runs. Its hard limit holds
   * too.
   */
  readonly cpuMsMax?: () => number;
  /** For background work: gives way to others (nice(1)), and stops while git works for a request. */
  readonly background?: true;
  /** Called once, when a NUL appears on standard error. */
  readonly onNul?: () => void;
  /** For a command whose output is streamed: lets whoever takes it say that it goes on at the pace of a slow reader. */
  readonly pacing?: Pacing;
  /** For a command whose output is streamed: what it said there and not on standard error, once it has ended. */
  readonly saidInOutput?: () => string;
}

/** Soft limits of one process: processor time (RLIMIT_CPU) and anonymous memory (RLIMIT_DATA). */
export interface OwnLimits {
  readonly cpuSecondsMax: number;
  readonly memoryBytesMax: number;
}

export interface Git {
  /** E.g. `2.39.5`. */
  readonly version: string;
  /** The work of this git that no request waits for. */
  readonly background: BackgroundWork;
  start(command: GitCommand, stdin: 'none' | 'stream', stdout: 'collect' | 'stream'): Promise<RunningProcess>;
  /** Runs a command that takes no input and prints little. */
  run(command: GitCommand): Promise<ProcessEnd>;
  /**
   * Yields the output of a command that reads this input. After the last byte it throws unless `accepts` returns true
   * for the process's end. Ending the iteration early kills the process.
   */
  stream(
    command: GitCommand,
    input: AsyncIterable<Uint8Array>,
    accepts?: (end: ProcessEnd) => boolean,
  ): AsyncGenerator<Buffer>;
}

/** The input of a command that reads none. */
export async function* noInput(): AsyncGenerator<Uint8Array> {}

/** Hands the wish of whoever takes a command's output to the process that makes it. */
export interface Pacing {
  /** Resolves when the process has a slot among those for slow readers; rejects with ReaderTooSlow if not. */
  slowDown(): Promise<void>;
  /** Whether the process has waited for a slow reader. */
  isSlow(): boolean;
  begun(process: Pick<RunningProcess, 'pace'>): void;
}

export function createPacing(): Pacing {
  let running: Pick<RunningProcess, 'pace'> | null = null;
  let isSlow = false;
  return {
    // Only output is taken too slowly, so the process that made it has begun.
    slowDown: async () => {
      isSlow = true;
      await running?.pace();
    },
    isSlow: () => isSlow,
    begun: (process) => {
      running = process;
    },
  };
}

/** The longest time of a command that names no other, such as one that answers a fetch. */
export const WALL_MS_MAX = 60 * 60_000;
/**
 * All git gives way to the server, which answers everybody; what has limits of its own to the rest of git, and
 * background work to all others.
 */
const NICENESS = { request: 10, limited: 13, background: 16 } as const;

/** Finds git; rejects unless it is new enough (git-environment.ts). */
export async function createGit(runner: ProcessRunner, wantedPath: string | undefined): Promise<Git> {
  const gitPath = await findGit(wantedPath);
  const background = new BackgroundWork();
  const start: Git['start'] = async (command, stdin, stdout) => {
    const requestEnds = command.background === true ? null : background.requestBegins();
    try {
      const running = await runner.run({
        ...programOf(gitPath, command),
        cwd: '/',
        env: gitEnvironment(gitPath, { ...(await command.view.variables()), ...command.variables }, command.config),
        stdin,
        stdout,
        key: command.view.key,
        wallMsMax: command.wallMsMax ?? WALL_MS_MAX,
        ...(command.signal === undefined ? {} : { signal: command.signal }),
        ...(command.slots === undefined ? {} : { slots: command.slots }),
        ...(command.onNul === undefined ? {} : { onNul: command.onNul }),
        ...(command.memoryBytesMax === undefined ? {} : { memoryBytesMax: command.memoryBytesMax }),
        ...(command.cpuMsMax === undefined ? {} : { cpuMsMax: command.cpuMsMax }),
      });
      const ends = requestEnds ?? background.processBegins(running);
      running.ended.then(ends, ends);
      return running;
    } catch (cause) {
      requestEnds?.();
      if (!(cause instanceof ProcessStartError)) throw cause;
      throw new ObjectDatabaseError('object-database-unavailable', `git did not start: ${cause.message}`, { cause });
    }
  };
  const run: Git['run'] = async (command) => completed(command, await (await start(command, 'none', 'collect')).ended);
  const view: ObjectView = { variables: async () => ({}), key: '' };
  const { stdout } = await run({ args: ['version'], view });
  return {
    version: checkGitVersion(gitPath, stdout ?? ''),
    background,
    start,
    run,
    stream: (command, input, accepts = ({ code }) => code === 0) => streamOf(start, command, input, accepts),
  };
}

/** A limit that is stricter already stays as it is. */
function programOf(
  gitPath: string,
  { args, limits, background, lastArgument }: GitCommand,
): { readonly file: string; readonly args: readonly string[]; readonly niceness: number } {
  if (background === true) return { file: gitPath, args, niceness: NICENESS.background };
  if (limits === undefined) return { file: gitPath, args, niceness: NICENESS.request };
  const ulimits = [`-t ${limits.cpuSecondsMax}`, `-d ${Math.floor(limits.memoryBytesMax / 1_024)}`];
  const limiting = ulimits.map((ulimit) => `ulimit -S ${ulimit} 2>/dev/null || :`).join('; ');
  const script = `${limiting}; ${lastArgument === undefined ? 'exec "$@"' : WITH_LAST}`;
  const last = lastArgument === undefined ? [] : [escapedBytes(lastArgument)];
  return { file: '/bin/sh', args: ['-c', script, 'sh', ...last, gitPath, ...args], niceness: NICENESS.limited };
}

/** The dot keeps line feeds at the end, which the shell takes from what a command prints. */
const WITH_LAST = 'last=$(printf %b. "$1"); shift; exec "$@" "${last%.}"';

/** Returns the bytes in the form of printf(1), whose `%b` all shells know alike. */
function escapedBytes(bytes: Uint8Array): string {
  const isPlain = /[\w/.-]/;
  let text = '';
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    text += isPlain.test(character) ? character : `\\0${byte.toString(8).padStart(3, '0')}`;
  }
  return text;
}

async function* streamOf(
  start: Git['start'],
  command: GitCommand,
  input: AsyncIterable<Uint8Array>,
  accepts: (end: ProcessEnd) => boolean,
): AsyncGenerator<Buffer> {
  const running = await start(command, 'stream', 'stream');
  const { stdin, stdout } = running;
  command.pacing?.begun(running);
  if (stdin === null || stdout === null) throw new TypeError('The process was started without the streams it needs');
  let inputFailure: { readonly cause: unknown } | null = null;
  const feeding = feed(stdin, input).catch((cause: unknown) => {
    inputFailure = { cause };
    running.kill();
  });
  try {
    yield* chunksOf(stdout);
    const end = completed(command, await running.ended);
    if (!accepts(end)) throw streamError(command, end);
  } catch (error) {
    if (inputFailure !== null) throw (inputFailure as { readonly cause: unknown }).cause;
    throw error;
  } finally {
    running.kill();
  }
  await feeding;
}

/** The time of a process that waited for its reader is no measure of the repository. */
function streamError(command: GitCommand, end: ProcessEnd): Error {
  if (end.killed === 'timeout' && command.pacing?.isSlow() === true) {
    return new ReaderTooSlow('git waited too long for a slow reader');
  }
  const said = command.saidInOutput?.() ?? '';
  return commandError(command, { ...end, stderr: `${said}\n${end.stderr}` });
}

/** Yields what arrives until the other end closes. A broken connection is no error here: the exit status shows why. */
async function* chunksOf(socket: Socket): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of socket) yield chunk as Buffer;
  } catch (error) {
    const premature = error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
    const reset = error instanceof Error && 'code' in error && error.code === 'ECONNRESET';
    if (!premature && !reset) throw error;
  }
}

/**
 * Writes the whole input to a process and ends its standard input. Resolves false early when the process takes no more;
 * rejects only when the input fails.
 */
export async function feed(stdin: Socket, input: AsyncIterable<Uint8Array>): Promise<boolean> {
  for await (const chunk of input) {
    if (stdin.destroyed) return false;
    if (!stdin.write(chunk)) await drained(stdin);
  }
  if (stdin.destroyed) return false;
  stdin.end();
  return true;
}

function drained(stdin: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (stdin.destroyed || !stdin.writableNeedDrain) {
      resolve();
      return;
    }
    const done = () => {
      stdin.off('drain', done);
      stdin.off('close', done);
      resolve();
    };
    stdin.on('drain', done);
    stdin.on('close', done);
  });
}

/** Returns the end of a process that exited or timed out. Throws when it was cancelled, or its helper died. */
export function completed(command: GitCommand, end: ProcessEnd): ProcessEnd {
  if (end.killed === 'cancelled') command.signal?.throwIfAborted();
  if (end.killed === 'no') return end;
  if (end.killed === 'timeout') return end;
  throw commandError(command, end);
}

/** The error for operators: the command's name, how it ended, and git's last three lines on standard error. */
export function commandError(command: GitCommand, end: ProcessEnd): ObjectDatabaseError {
  const how = end.killed === 'no' ? (end.signal ?? `status ${end.code}`) : end.killed;
  const lastLines = end.stderr.trim().split('\n').slice(-3).join('; ');
  const message = `git ${command.args[0]} ended with ${how}${lastLines === '' ? '' : `: ${lastLines}`}`;
  return new ObjectDatabaseError(isBound(end) ? 'reading-too-costly' : 'object-database-unavailable', message);
}

/**
 * Whether the process, or one that it started, reached its limit on memory or time, as it would again over the same
 * objects. Signal 24 is SIGXCPU.
 */
function isBound({ killed, signal, stderr }: ProcessEnd): boolean {
  const said = /[Oo]ut of memory|[Cc]annot allocate memory|^error: \S+ died of signal 24$/m;
  return killed === 'timeout' || signal === 'SIGXCPU' || said.test(stderr);
}
