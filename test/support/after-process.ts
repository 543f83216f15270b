/** Cleaning up after this process, however it ends. */
import { spawn } from 'node:child_process';

/**
 * Starts a shell that waits for the end of this process, even by a SIGKILL, and then runs the script on the
 * arguments. Returns what sends it home instead.
 */
export function afterProcess(script: string, ...args: readonly string[]): () => void {
  // The end of its input comes with the end of whoever could write to it.
  const shell = spawn('/bin/sh', ['-c', `read -r word && exit; ${script}`, 'sh', ...args], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  });
  shell.unref();
  // Typed as a stream; as a pipe of a child process it can be unreferenced.
  if ('unref' in shell.stdin && typeof shell.stdin.unref === 'function') shell.stdin.unref();
  return () => shell.stdin.end('done\n');
}
