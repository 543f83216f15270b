/**
 * Loaded into a server before its own code (`node --import`): writes how late the timers of its event loop are.
 *
 * Invariants: only the server's main thread measures. Node passes the option on to the processes and threads that
 * the server starts.
 */
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const RESOLUTION_MS = 5;
const WRITTEN_EVERY_MS = 250;

const file = process.env['LOOP_DELAY_FILE'];
if (file !== undefined && isMainThread && process.argv[1]?.endsWith('apps/server/main.ts') === true) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  // The monitor counts the time between two ticks of its timer, which is at least the resolution.
  const ms = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
  const write = (): void => {
    // The test asks for a new measurement by a file, since a signal would be the server's own business.
    if (existsSync(`${file}.again`)) {
      delay.reset();
      rmSync(`${file}.again`);
    }
    // The test reads it at any moment.
    writeFileSync(`${file}.new`, JSON.stringify({ p99Ms: ms(delay.percentile(99)), maxMs: ms(delay.max) }));
    renameSync(`${file}.new`, file);
  };
  setInterval(write, WRITTEN_EVERY_MS).unref();
}
