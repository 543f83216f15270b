/** Waits on the machine's timer: core/ports/clock.ts, `Pause` and `SettledWithin`. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pause, SettledWithin } from '../../core/ports/clock.ts';

export const pause: Pause = async (ms, signal) => {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
};

export const settledWithin: SettledWithin = async (ms, work) => {
  const settled = new AbortController();
  const end = (): void => settled.abort();
  work.then(end, end);
  await pause(ms, settled.signal);
};
