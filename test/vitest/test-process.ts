/**
 * The program of one test file's process: it runs vitest's own worker and then lets the process exit.
 *
 * Invariants: after its last test the process exits on its own when the tests left nothing open; an error thrown
 * after that ends it with an exit code that the pool reports.
 */
import { init, runBaseTests, setupEnvironment } from 'vitest/worker';

const send = process.send?.bind(process);
if (send === undefined) throw new TypeError('Only test/vitest/process-pool.ts may start this program');
const exit = process.exit.bind(process);
/** The process that reads the results has ended. */
const orphaned = (): void => exit(1);
process.on('disconnect', orphaned);

init({
  post: (message) => void send(message),
  on: (listener) => void process.on('message', listener),
  off: (listener) => void process.off('message', listener),
  runTests: (state, traces) => runBaseTests('run', state, traces),
  collectTests: (state, traces) => runBaseTests('collect', state, traces),
  setup: setupEnvironment,
  teardown: () => {
    process.removeAllListeners('message');
    process.off('disconnect', orphaned);
    process.removeAllListeners('uncaughtException');
    process.removeAllListeners('unhandledRejection');
    process.exit = exit;
  },
});
