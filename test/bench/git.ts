/**
 * The real git client as the bench uses it: it prepares repositories and packs, is recorded and is timed.
 *
 * Invariants: it reads and writes no configuration, credential or cache of the machine's user.
 */
import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';

export interface GitOptions {
  readonly cwd?: string;
  readonly input?: string | Uint8Array | Readable;
  readonly environment?: Readonly<Record<string, string>>;
}

const STDERR_CHARACTERS_MAX = 4_000;
/** A bound for servers that hang, so that the bench does not hang with them. */
const RUN_MS_MAX = 900_000;

/** Runs git and returns its standard output. Throws with its standard error when git fails. */
export async function git(args: readonly string[], options: GitOptions = {}): Promise<Buffer> {
  const child = spawn('git', args, {
    cwd: options.cwd,
    env: { ...gitEnvironment(), ...options.environment },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: RUN_MS_MAX,
  });
  const output: Buffer[] = [];
  let errors = '';
  child.stdout.on('data', (bytes: Buffer) => output.push(bytes));
  child.stderr.on('data', (bytes: Buffer) => {
    errors = (errors + bytes.toString('utf8')).slice(-STDERR_CHARACTERS_MAX);
  });
  // A git that refuses early closes its input; its exit status reports that, so a broken pipe is ignored.
  child.stdin.on('error', () => undefined);
  const { input } = options;
  if (input === undefined || typeof input === 'string' || input instanceof Uint8Array) child.stdin.end(input);
  else input.pipe(child.stdin);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (status !== 0) throw new Error(`git ${args.join(' ')} ended with status ${status}: ${errors.trim()}`);
  return Buffer.concat(output);
}

export async function gitText(args: readonly string[], options: GitOptions = {}): Promise<string> {
  return (await git(args, options)).toString('utf8').trim();
}

export async function gitLines(args: readonly string[], options: GitOptions = {}): Promise<readonly string[]> {
  return (await gitText(args, options)).split('\n').filter((line) => line !== '');
}

function gitEnvironment(): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    HOME: '/nonexistent',
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    GIT_AUTHOR_NAME: 'Bench',
    GIT_AUTHOR_EMAIL: 'bench@example.org',
    GIT_COMMITTER_NAME: 'Bench',
    GIT_COMMITTER_EMAIL: 'bench@example.org',
  };
}
