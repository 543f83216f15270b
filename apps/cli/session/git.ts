/**
 * The git of the machine, which the command line calls to clone, to ask for remotes and to set up the credential
 * helper.
 *
 * Invariants: no shell reads an argument, no argument of a person's is taken for an option of git, and no argument
 * holds a secret.
 */
import { spawn } from 'node:child_process';
import type { Context } from './context.ts';
import { Failure } from './failure.ts';

/** Runs git and returns its standard output; null if it fails. */
export async function capturedGit(context: Context, args: readonly string[]): Promise<string | null> {
  const { code, output } = await runGit(context, args, 'pipe');
  return code === 0 ? output : null;
}

/** Runs git with the terminal of this process; throws a failure if git fails. */
export async function shownGit(context: Context, args: readonly string[]): Promise<void> {
  const { code } = await runGit(context, args, 'inherit');
  if (code !== 0) throw new Failure(1, `git ${args[0] ?? ''} failed`);
}

async function runGit(
  context: Context,
  args: readonly string[],
  stdio: 'pipe' | 'inherit',
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn('git', [...args], {
    cwd: context.folder,
    env: { ...process.env, ...context.environment },
    // Standard output is this command's own: it may have to be JSON.
    stdio: stdio === 'pipe' ? ['ignore', 'pipe', 'ignore'] : ['inherit', 2, 2],
  });
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text));
  return new Promise((resolve, reject) => {
    child.on('error', () => reject(new Failure(1, 'git cannot be run', 'Install git')));
    child.on('close', (code) => resolve({ code, output }));
  });
}

/** Quotes a word for the shell that git starts helpers with. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** Returns the value of `credential.<url>.helper` that makes git ask this program, about this service. */
export function helperCommand(context: Context, host: { readonly baseUrl: string; readonly webUrl: string }): string {
  const words = [...context.program, '--base-url', host.baseUrl, '--web-url', host.webUrl, 'git-credential'];
  return `!${words.map(quoted).join(' ')}`;
}
