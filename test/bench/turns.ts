/**
 * Measures for how long one turn of this thread's event loop works.
 *
 * Invariants: it counts the processor time of the thread and not the wall clock, so that other programs of the
 * machine do not count. The garbage collection of the thread counts. It does not keep the process running.
 */

export interface Turns {
  /** Returns the longest turn since the last call, in milliseconds. */
  takeLongestMs(): number;
  stop(): void;
}

/** A turn is taken for at most this much longer than it was. */
const EVERY_MS = 1;

export function watchTurns(): Turns {
  let since = process.threadCpuUsage();
  let longestUs = 0;
  const look = (): void => {
    const now = process.threadCpuUsage();
    longestUs = Math.max(longestUs, now.user + now.system - since.user - since.system);
    since = now;
  };
  const timer = setInterval(look, EVERY_MS).unref();
  return {
    takeLongestMs() {
      const longestMs = longestUs / 1_000;
      longestUs = 0;
      return longestMs;
    },
    stop: () => clearInterval(timer),
  };
}
