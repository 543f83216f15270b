/**
 * Runs test files in processes that each lead a process group of its own: one file, or several that may share a process
 * (test/vitest/shared-process.ts), one after the other. Vitest's own pool cannot end a test that never yields, since it
 * checks the time limit in the same process, and it leaves running what a test started.
 *
 * Invariants: whatever a file does, its process ends, and with it everything that it started in its group; the run
 * names what it had to end. A file whose process does not exit on its own, or exits with an error, has failed. Where
 * files shared it, the last of them has, and the others are named.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { join, relative } from 'node:path';
import type { PoolOptions, PoolWorker, Vitest } from 'vitest/node';
import { afterProcess } from '../support/after-process.ts';
import { endGroup, groupMembers } from './process-group.ts';
import { createSharing, FILES_OF_PROCESS_MAX } from './shared-process.ts';

export interface ProcessPoolOptions {
  readonly root: string;
  /** How long one file may take, from its first test to its last. */
  readonly fileMsMax: number;
  /** How long a process may take to exit after its last test. */
  readonly lingerMsMax: number;
}

/** A message about a test file's process, besides the results of its tests. */
export interface ProcessRemark {
  /** The path below the root. */
  readonly file: string;
  readonly text: string;
}

export interface ProcessPool {
  /** Vitest's setting `pool`. */
  readonly runner: { readonly name: string; createPoolWorker(options: PoolOptions): PoolWorker };
  /** Failures of processes, which no test of the file has reported. */
  readonly failures: readonly ProcessRemark[];
  /** Processes that outlived a test file and were killed. */
  readonly leftovers: readonly ProcessRemark[];
  /** Resolves when every started process has ended. */
  ended(): Promise<void>;
}

/** How long output may still arrive: a child that left the group may hold the pipe open. */
const LATE_OUTPUT_MS = 1_000;

export function createProcessPool(options: ProcessPoolOptions): ProcessPool {
  const failures: ProcessRemark[] = [];
  const leftovers: ProcessRemark[] = [];
  const alive = new Set<Promise<void>>();
  const mayShare = createSharing(options.root);

  /** Waits until a process and its group have ended, and records failures and leftovers. */
  async function follow(child: ChildProcess, pid: number, fate: Fate, vitest: Vitest): Promise<void> {
    // Kills the group too when vitest's own process ends, for whatever reason.
    const dismiss = afterProcess('kill -KILL "-$1"', String(pid));
    const output = collect(child);
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
      child.once('exit', (...ending) => resolve(ending));
    });
    clearTimeout(fate.timer);
    const members = await groupMembers(pid);
    endGroup(pid);
    dismiss();
    const [file = '', ...before] = fate.files.toReversed();
    const remark = (text: string): ProcessRemark => ({ file, text: [text, ...before].join('\n    after ') });
    leftovers.push(...members.map(remark));
    const failure = fate.failure ?? failureOf(code, signal, fate);
    if (failure !== null) failures.push(remark(failure));
    const text = await output;
    const failedFiles = new Set(vitest.state.getFailedFilepaths());
    const failed = failure !== null || fate.files.some((each) => failedFiles.has(join(options.root, each)));
    const title = `output of ${fate.files.join(', ')}`;
    if (failed && text !== '') vitest.logger.error(`${title}\n${text.trimEnd().replace(/^/gm, '    ')}`);
  }

  function createPoolWorker({ project, env }: PoolOptions): PoolWorker {
    const errors = new EventEmitter();
    const fate: Fate = { files: [], failure: null, stopping: false, timer: undefined };
    let child: ChildProcess | null = null;
    let gone = Promise.resolve();
    const started = (): ChildProcess => {
      if (child === null) throw new TypeError('The process of a test file was not started');
      return child;
    };
    /** Kills the process and reports the reason to vitest. */
    const endFor = (reason: string): void => {
      fate.failure = reason;
      // Vitest listens for errors only while the tests run.
      if (errors.listenerCount('error') > 0) errors.emit('error', new Error(`${fate.files.at(-1)} ${reason}`));
      endGroup(started().pid ?? 0);
    };
    const endAfter = (ms: number, reason: string): void => {
      clearTimeout(fate.timer);
      fate.timer = setTimeout(() => endFor(reason), ms);
    };
    return {
      name: 'processes',
      deserialize: (data) => data,
      canReuse: ({ context: { files } }) =>
        fate.failure === null &&
        fate.files.length < FILES_OF_PROCESS_MAX &&
        [...fate.files, ...files.map(({ filepath }) => relative(options.root, filepath))].every(mayShare),
      on: (event, listener) => void (event === 'error' ? errors : started()).on(event, listener),
      off: (event, listener) => void (event === 'error' ? errors : started()).off(event, listener),
      async start() {
        child = fork(join(import.meta.dirname, 'test-process.ts'), [], {
          cwd: options.root,
          env,
          execArgv: ['--disable-warning=ExperimentalWarning'],
          detached: true,
          stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
          serialization: 'advanced',
        });
        // Sending a message to an ended process fails; the exit handler reports the end itself.
        child.on('error', () => undefined);
        const { pid } = child;
        if (pid === undefined) throw new Error(`${process.execPath} cannot be run`);
        gone = follow(child, pid, fate, project.vitest);
        alive.add(gone);
        void gone.finally(() => alive.delete(gone));
      },
      send(message) {
        if (message.type === 'run') {
          fate.files.push(...message.context.files.map(({ filepath }) => relative(options.root, filepath)));
          endAfter(options.fileMsMax, `ended after ${options.fileMsMax / 1000} s without an end`);
        }
        if (message.type === 'stop') {
          fate.stopping = true;
          endAfter(options.lingerMsMax, `did not end by itself within ${options.lingerMsMax / 1000} s after its tests`);
        }
        started().send(message);
      },
      async stop() {
        // Vitest stops waiting for this process without having requested its end.
        if (!fate.stopping) {
          fate.failure ??= 'ended with the run';
          endGroup(started().pid ?? 0);
        }
        await gone;
      },
    };
  }

  const ended = async (): Promise<void> => {
    while (alive.size > 0) await Promise.all(alive);
  };
  return { runner: { name: 'processes', createPoolWorker }, failures, leftovers, ended };
}

/** What is known about a running process. */
interface Fate {
  /** The files that it has run, the latest last. */
  readonly files: string[];
  /** Why the pool killed it; null when it did not. */
  failure: string | null;
  /** Whether vitest has requested its end. */
  stopping: boolean;
  timer: NodeJS.Timeout | undefined;
}

function failureOf(code: number | null, signal: NodeJS.Signals | null, { stopping }: Fate): string | null {
  const when = stopping ? 'after its tests' : 'before its tests did';
  if (signal !== null) return `ended by ${signal} ${when}`;
  return code === 0 && stopping ? null : `ended with exit code ${code} ${when}`;
}

/** Collects what the process and its children write, until all have ended or shortly after the process. */
async function collect(child: ChildProcess): Promise<string> {
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => void (text += chunk));
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => void (text += chunk));
  await new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('exit', () => setTimeout(resolve, LATE_OUTPUT_MS).unref());
  });
  return text;
}
