/**
 * Ends a process that npm started with `npm start`, once npm is gone.
 *
 * npm runs a script through a shell. A signal to npm ends both and reaches nothing below the shell, so without this a
 * service manager that stops npm would leave the server running.
 *
 * Invariants: only the process that was launched ends itself. The option that loads this module is not
 * handed on to its children. A process that npm did not start keeps running without its parent, as
 * programs in the background do.
 */
import { isMainThread } from 'node:worker_threads';

/** Finding out takes no system call but getppid(2). */
const LOOK_INTERVAL_MS = 1_000;

/**
 * Whether npm runs this very entry as a script of package.json: it hands the script's text on to everything below.
 *
 * @param {string} entry
 */
export function isStartedByNpm(entry) {
  const { npm_lifecycle_script: script = '' } = process.env;
  return script.startsWith(`node apps/launcher/launch.cjs ${entry}`);
}

/**
 * Sends this process SIGTERM when its parent is another one than `parent`.
 *
 * @param {number} parent
 */
export function endWithout(parent) {
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, LOOK_INTERVAL_MS);
  timer.unref();
}

/** Returns the option by which the Node that replaces this process watches the same parent. */
export function watchingOption() {
  const module = new URL(import.meta.url);
  module.search = new URLSearchParams({ of: String(process.pid), parent: String(process.ppid) }).toString();
  return `--import=${module.href}`;
}

const asked = new URL(import.meta.url).searchParams;
if (isMainThread && asked.get('of') === String(process.pid)) {
  process.execArgv = process.execArgv.filter((option) => option !== `--import=${import.meta.url}`);
  endWithout(Number(asked.get('parent')));
}
