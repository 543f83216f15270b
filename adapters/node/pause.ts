/** Waits on the machine's timer: core/ports/clock.ts, `Pause`. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pause } from '../../core/ports/clock.ts';

export const pause: Pause = async (ms, signal) => {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
};
