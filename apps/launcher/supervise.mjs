/**
 * Runs the server as a child process, and starts it again when it ends without having been asked to.
 *
 * Invariants: a first start that fails is the operator's to mend, so it is not repeated. Once the server was ready, it
 * is started again after every end but one with exit code 0 or after a signal that was passed on, and given up when it
 * fails to become ready too often in a row. The launcher ends with the server's last exit code or signal. The server
 * notices by its closed channel when the launcher is gone.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

const PASSED_ON = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
/** What a terminal sends to the server as well; a second one would make it stop without an orderly end. */
const OF_TERMINAL = ['SIGINT', 'SIGHUP'];

/** @typedef {{ firstPauseMs: number, lastPauseMs: number, steadyMs: number, failedStartsMax: number }} Patience */

/**
 * The pause doubles from one start to the next, and is the first again after the server ran for `steadyMs`.
 *
 * @type {Patience}
 */
const PATIENCE = { firstPauseMs: 1_000, lastPauseMs: 30_000, steadyMs: 60_000, failedStartsMax: 5 };

/** @param {string} line */
function say(line) {
  process.stderr.write(`strata: ${line}\n`);
}

/**
 * @param {string} node
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @param {Patience} patience
 */
export function supervise(node, args, env, patience = PATIENCE) {
  const { firstPauseMs, lastPauseMs, steadyMs, failedStartsMax } = patience;
  /** @type {import('node:child_process').ChildProcess | null} */
  let child = null;
  /** @type {NodeJS.Signals | null} */
  let asked = null;
  let wasReady = false;
  let failedStarts = 0;
  let pauseMs = firstPauseMs;

  for (const signal of PASSED_ON) {
    process.on(signal, () => {
      // A server that renews its certificate on SIGHUP goes on.
      if (signal !== 'SIGHUP') asked = signal;
      if (child === null) endBy(signal);
      else if (!OF_TERMINAL.includes(signal) || !process.stdin.isTTY) child.kill(signal);
    });
  }
  start();

  function start() {
    const startedAt = performance.now();
    let isReady = false;
    const running = spawn(node, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'], env });
    child = running;
    running.on('message', () => {
      isReady = wasReady = true;
      failedStarts = 0;
    });
    running.on('error', (error) => {
      if (running.pid !== undefined) return;
      console.error(`strata: ${node} cannot be run: ${error.message}`);
      process.exit(1);
    });
    running.on('exit', (code, signal) => {
      child = null;
      if (!isReady) failedStarts += 1;
      const how = signal ?? `exit code ${code}`;
      const isOver = code === 0 || asked !== null || !wasReady || signal === 'SIGHUP';
      if (isOver) return endAs(code, signal);
      if (failedStarts >= failedStartsMax) {
        say(`the server ended with ${how}, and did not become ready ${failedStarts} times: given up`);
        return endAs(code, signal);
      }
      if (performance.now() - startedAt >= steadyMs) pauseMs = firstPauseMs;
      say(`the server ended with ${how}: it is started again in ${pauseMs / 1_000} s`);
      setTimeout(start, pauseMs);
      pauseMs = Math.min(2 * pauseMs, lastPauseMs);
    });
  }
}

/**
 * @param {number | null} code
 * @param {NodeJS.Signals | null} signal
 */
function endAs(code, signal) {
  if (signal === null) process.exit(code ?? 1);
  endBy(signal);
}

/** @param {NodeJS.Signals} signal */
function endBy(signal) {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // A signal that does not end this process (Node ignores SIGPIPE, and process 1 of a container all) is reported as an
  // exit code.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 100);
}
