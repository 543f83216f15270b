/**
 * Installs the packages of package-lock.json with `npm ci`, once for any number of concurrent processes.
 *
 * Invariants: npm's install record is removed before npm changes anything, and exists again only when npm is done,
 * so that an interrupted install is detected and repeated. One process installs while the others wait for it. A lock
 * whose process died is taken over. Nothing is written to standard output, which belongs to the entry.
 */
import { spawn } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { developmentLeftOut, INSTALL_RECORD, mismatch } from './installed.mjs';

const LOCK_POLL_MS = 200;
const LOCK_HEARTBEAT_MS = 5_000;
/** A lock untouched for this long has no owner, even if another process now has its process id. */
const LOCK_SILENCE_MS_MAX = 60_000;
const STOP_SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);

/** An install that failed; the message is a sentence for the person who started it. */
export class InstallError extends Error {}

/** @param {string} line */
function say(line) {
  process.stderr.write(`strata: ${line}\n`);
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return codeOf(error) === 'EPERM';
  }
}

/**
 * Reads the lock: its text, and the id of a process in it that is still running, if any.
 *
 * @param {string} lock
 */
function readLock(lock) {
  try {
    const text = readFileSync(lock, 'utf8');
    const silentMs = Date.now() - statSync(lock).mtimeMs;
    const pids = text.split(' ').map(Number);
    const alive = pids.find((pid) => pid > 0 && pid !== process.pid && isAlive(pid));
    return { text, holder: silentMs > LOCK_SILENCE_MS_MAX ? undefined : alive };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Takes the lock: a file that holds its owner's process id and appears whole, since it is linked into place.
 *
 * @param {string} lock
 * @returns {number | null} the process id of the running process that holds it, or null when this process took the lock
 */
function tryLock(lock) {
  const own = `${lock}.${process.pid}`;
  writeFileSync(own, String(process.pid));
  try {
    linkSync(own, lock);
    return null;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(own, { force: true });
  }
  const found = readLock(lock);
  if (found?.holder !== undefined) return found.holder;
  if (found !== null) removeStale(lock, found.text);
  return tryLock(lock);
}

/**
 * Removes a dead process's lock. Another process may have done the same and locked again since. So the removed file
 * is checked, and put back if it is not the dead process's lock.
 *
 * @param {string} lock
 * @param {string} text
 */
function removeStale(lock, text) {
  const aside = `${lock}.stale-${process.pid}`;
  try {
    renameSync(lock, aside);
    if (readFileSync(aside, 'utf8') !== text) linkSync(aside, lock);
  } catch (error) {
    // Another process was faster: the next attempt finds its lock.
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

/**
 * @param {string} root
 * @param {string} lock held by this process; it also names npm's process, which outlives a killed launcher
 * @param {string[]} args
 * @returns {Promise<void>} rejects if npm is missing, or fails, after npm printed the reason
 */
function runNpm(root, lock, args) {
  // An npm script's path begins with the installed tools, this project's Node among them. npm is about to remove
  // those, so it must not run on them.
  const tools = join(root, 'node_modules', '.bin');
  const { PATH = '' } = process.env;
  const path = PATH.split(delimiter).filter((entry) => entry !== tools);
  return new Promise((resolve, reject) => {
    const env = { ...process.env, PATH: path.join(delimiter) };
    const npm = spawn('npm', args, { cwd: root, env, stdio: ['ignore', 2, 2] });
    if (npm.pid !== undefined) writeFileSync(lock, `${process.pid} ${npm.pid}`);
    // A signal to this process must stop npm as well; the next start repeats the interrupted install.
    const stop = () => npm.kill();
    const heartbeat = setInterval(() => {
      // The lock is gone if another process took it over after a long silence of this one: only one may install.
      if (existsSync(lock)) utimesSync(lock, new Date(), new Date());
      else stop();
    }, LOCK_HEARTBEAT_MS);
    for (const signal of STOP_SIGNALS) process.on(signal, stop);
    const settle = () => {
      clearInterval(heartbeat);
      for (const signal of STOP_SIGNALS) process.off(signal, stop);
    };
    npm.on('error', (error) => {
      settle();
      const missing = codeOf(error) === 'ENOENT';
      reject(new InstallError(missing ? 'npm is not on the path; it comes with Node' : `npm: ${error.message}`));
    });
    npm.on('exit', (code, signal) => {
      settle();
      if (code === 0) resolve();
      else reject(new InstallError(`\`npm ${args.join(' ')}\` ended with ${signal ?? `exit code ${code}`}, see above`));
    });
  });
}

/**
 * Brings node_modules in line with package-lock.json. Throws `InstallError` if that fails.
 *
 * @param {string} root
 * @param {{ development: boolean }} needs
 */
export async function install(root, needs) {
  if (lstatSync(join(root, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) {
    // A second checkout links to the packages of a first one. npm would delete those, so they are used as they are.
    say(`node_modules is a link, left as it is though ${mismatch(root, needs)}`);
    return;
  }
  mkdirSync(join(root, '.cache'), { recursive: true });
  const lock = join(root, '.cache', 'install.lock');
  for (let holder = tryLock(lock), isReported = false; holder !== null; holder = tryLock(lock), isReported = true) {
    if (!isReported) say(`waiting for the install that process ${holder} is running`);
    await sleep(LOCK_POLL_MS);
  }
  try {
    const reason = mismatch(root, needs);
    if (reason === null) return;
    // The last install may have omitted development packages, on request or by NODE_ENV; tests and checks need them.
    const scope = needs.development ? ['--include=dev'] : developmentLeftOut(root) ? ['--omit=dev'] : [];
    say(`installing packages (${reason}); this takes a minute or less`);
    rmSync(join(root, INSTALL_RECORD), { force: true });
    await runNpm(root, lock, ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', ...scope]);
    const left = mismatch(root, needs);
    if (left !== null) throw new InstallError(`npm finished, yet ${left}`);
  } finally {
    rmSync(lock, { force: true });
  }
}
