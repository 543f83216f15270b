/**
 * Running git on a repository's objects: each command in the environment of git-environment.ts, through the helper.
 *
 * Must stay true: a command's input and output are streamed with backpressure, and whoever stops reading ends it.
 */
import type { Socket } from 'node:net';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { checkGitVersion, type ConfigPairs, type Environment, findGit, gitEnvironment } from './git-environment.ts';
import { ProcessStartError } from './helper-process.ts';
import type { ProcessEnd, ProcessRunner, RunningProcess } from './process-runner.ts';

/** Which objects a command sees: GIT_DIR, and for a quarantine the object directories. */
export interface ObjectView {
  readonly variables: Environment;
  /** Whose turn it takes when processes wait: the repository. */
  readonly key: string;
}

export interface GitCommand {
  readonly args: readonly string[];
  readonly view: ObjectView;
  readonly config?: ConfigPairs;
  readonly variables?: Environment;
  readonly signal?: AbortSignal;
  /** From the start to the exit. */
  readonly wallMsMax?: number;
  readonly onNul?: () => void;
}

export interface Git {
  /** E.g. `2.39.5`. */
  readonly version: string;
  start(command: GitCommand, stdin: 'none' | 'stream', stdout: 'collect' | 'stream'): Promise<RunningProcess>;
  /** Runs a command of little output, without input. */
  answer(command: GitCommand): Promise<ProcessEnd>;
  /**
   * The output of a command that is fed this input. After the last byte it throws unless `accepts` is content with
   * the end. Ending the iteration early kills the process.
   */
  stream(
    command: GitCommand,
    input: AsyncIterable<Uint8Array>,
    accepts?: (end: ProcessEnd) => boolean,
  ): AsyncGenerator<Buffer>;
}

const WALL_MS_MAX = 60 * 60_000;

/** Finds git, and throws unless it is new enough. */
export async function createGit(runner: ProcessRunner, wantedPath: string | undefined): Promise<Git> {
  const gitPath = await findGit(wantedPath);
  const start: Git['start'] = async (command, stdin, stdout) => {
    try {
      return await runner.run({
        file: gitPath,
        args: command.args,
        cwd: '/',
        env: gitEnvironment(gitPath, { ...command.view.variables, ...command.variables }, command.config),
        stdin,
        stdout,
        key: command.view.key,
        wallMsMax: command.wallMsMax ?? WALL_MS_MAX,
        ...(command.signal === undefined ? {} : { signal: command.signal }),
        ...(command.onNul === undefined ? {} : { onNul: command.onNul }),
      });
    } catch (cause) {
      if (!(cause instanceof ProcessStartError)) throw cause;
      throw new ObjectDatabaseError('object-database-unavailable', `git did not start: ${cause.message}`, { cause });
    }
  };
  const answer: Git['answer'] = async (command) =>
    ended(command, await (await start(command, 'none', 'collect')).ended);
  const view: ObjectView = { variables: {}, key: '' };
  const { stdout } = await answer({ args: ['version'], view });
  return {
    version: checkGitVersion(gitPath, stdout ?? ''),
    start,
    answer,
    stream: (command, input, accepts = ({ code }) => code === 0) => streamOf(start, command, input, accepts),
  };
}

async function* streamOf(
  start: Git['start'],
  command: GitCommand,
  input: AsyncIterable<Uint8Array>,
  accepts: (end: ProcessEnd) => boolean,
): AsyncGenerator<Buffer> {
  const running = await start(command, 'stream', 'stream');
  const { stdin, stdout } = running;
  if (stdin === null || stdout === null) throw new TypeError('A stream was asked for and not given');
  let inputFailure: { readonly cause: unknown } | null = null;
  const feeding = feed(stdin, input).catch((cause: unknown) => {
    inputFailure = { cause };
    running.kill();
  });
  try {
    yield* chunksOf(stdout);
    const end = ended(command, await running.ended);
    if (!accepts(end)) throw commandError(command, end);
  } catch (error) {
    if (inputFailure !== null) throw (inputFailure as { readonly cause: unknown }).cause;
    throw error;
  } finally {
    running.kill();
  }
  await feeding;
}

/** What arrives until the other end closes; a connection that breaks ends it too, for the exit says why. */
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
 * Writes everything to a process and ends its input. Resolves early, with false, when the process takes no more;
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

/** An end that says something about the command; anything else is thrown. */
export function ended(command: GitCommand, end: ProcessEnd): ProcessEnd {
  if (end.killed === 'cancelled') command.signal?.throwIfAborted();
  if (end.killed === 'no') return end;
  if (end.killed === 'timeout') return end;
  throw commandError(command, end);
}

/** For operators: the command's name and what git said. */
export function commandError(command: GitCommand, end: ProcessEnd): ObjectDatabaseError {
  const how = end.killed === 'no' ? (end.signal ?? `status ${end.code}`) : end.killed;
  const said = end.stderr.trim().split('\n').slice(-3).join('; ');
  const message = `git ${command.args[0]} ended with ${how}${said === '' ? '' : `: ${said}`}`;
  return new ObjectDatabaseError('object-database-unavailable', message);
}
