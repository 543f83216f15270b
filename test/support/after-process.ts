/** Cleans up after this process, however it ends. */
import { spawn } from 'node:child_process';

/**
 * Starts a shell that waits until this process ends, even by a SIGKILL, and then runs the script with the arguments.
 * Returns a function that ends the shell without running the script.
 */
export function afterProcess(script: string, ...args: readonly string[]): () => void {
  // The shell's `read` reaches the end of its input when this process, the only writer, has ended.
  const shell = spawn('/bin/sh', ['-c', `read -r word && exit; ${script}`, 'sh', ...args], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  });
  shell.unref();
  // The type is a stream; the pipe of a child process also has `unref`.
  if ('unref' in shell.stdin && typeof shell.stdin.unref === 'function') shell.stdin.unref();
  return () => shell.stdin.end('done\n');
}
