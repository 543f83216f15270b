/**
 * Git as the object database uses it: commands with the one environment, whole answers or streams of bytes.
 *
 * Must stay true: whoever stops reading, or aborts, ends the process and its whole group.
 */
import type { Socket } from 'node:net';
import { ObjectDatabaseError } from '../../core/ports/object-database.ts';
import { type ConfigPairs, type Environment, gitEnvironment } from './git-environment.ts';
import type { ProcessEnd, ProcessRunner, RunningProcess } from './process-runner.ts';

export interface GitCommand {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Environment;
  readonly config?: ConfigPairs;
  /** Whose turn it is, e.g. the repository: see ProcessRunner. */
  readonly key: string;
  readonly wallMsMax: number;
  readonly signal?: AbortSignal;
  readonly onNul?: () => void;
}

export interface GitProcesses {
  start(
    command: GitCommand & { readonly stdin: 'none' | 'stream'; readonly stdout: 'collect' | 'stream' },
  ): Promise<RunningProcess>;
  /** Runs to the end with a small input; standard output as bytes. Rejects unless it exits with one of the codes. */
  answer(
    command: GitCommand,
    input: string,
    codes: readonly number[],
  ): Promise<{ readonly code: number; readonly output: Buffer }>;
  /** Standard output as it comes; throws after the last byte when git failed. */
  stream(command: GitCommand, input: AsyncIterable<Uint8Array> | string): AsyncGenerator<Uint8Array, void, undefined>;
}

export function createGitProcesses(runner: ProcessRunner, gitPath: string): GitProcesses {
  const start: GitProcesses['start'] = ({ args, env, config, ...rest }) =>
    runner.run({ ...rest, file: gitPath, args, env: gitEnvironment(gitPath, env, config) });

  async function* stream(
    command: GitCommand,
    input: AsyncIterable<Uint8Array> | string,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const process = await start({ ...command, stdin: 'stream', stdout: 'stream' });
    const { stdout } = process;
    if (stdout === null) throw new TypeError('A stream was asked for');
    const fed = feed(process, input);
    let complete = false;
    try {
      for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
        if (!(chunk instanceof Uint8Array)) throw new TypeError('A process is read as bytes');
        yield chunk;
      }
      complete = true;
    } finally {
      if (!complete) process.kill();
      stdout.destroy();
    }
    await fed;
    const end = await process.ended;
    if (end.code !== 0) throw failure(command, end);
  }

  return {
    start,
    stream,
    async answer(command, input, codes) {
      const process = await start({ ...command, stdin: 'stream', stdout: 'stream' });
      const fed = feed(process, input);
      const chunks: Uint8Array[] = [];
      for await (const chunk of process.stdout ?? []) chunks.push(chunk as Uint8Array);
      await fed;
      const end = await process.ended;
      if (end.code === null || !codes.includes(end.code)) throw failure(command, end);
      return { code: end.code, output: Buffer.concat(chunks) };
    },
  };
}

/** Writes the whole input; a process that ends early says why by its exit status. */
export async function feed(process: RunningProcess, input: AsyncIterable<Uint8Array> | string): Promise<void> {
  const { stdin } = process;
  if (stdin === null) return;
  let broken = false;
  stdin.on('error', () => {
    broken = true;
  });
  if (typeof input === 'string') {
    stdin.end(input);
    return;
  }
  for await (const chunk of input) {
    if (broken || stdin.destroyed) return;
    if (!stdin.write(chunk)) await drained(stdin);
  }
  stdin.end();
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      socket.off('drain', settle);
      socket.off('close', settle);
      resolve();
    };
    socket.on('drain', settle);
    socket.on('close', settle);
  });
}

function failure(command: GitCommand, end: ProcessEnd): ObjectDatabaseError {
  const how = end.killed === 'no' ? `exited ${end.code ?? end.signal}` : `was ended: ${end.killed}`;
  const text = `git ${command.args[0] ?? ''} ${how}: ${end.stderr.trim().slice(-2_000)}`;
  return new ObjectDatabaseError('object-database-unavailable', text);
}
