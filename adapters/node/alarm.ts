/**
 * Waits for a time of the machine's clock.
 *
 * Must stay true: the clock is looked at again and again, so that one that was set forth or back, or a machine that
 * slept, delays nothing by more than `LOOK_MS_MAX`, and rings nothing early.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Alarm, Clock } from '../../core/ports/clock.ts';

const LOOK_MS_MAX = 30_000;

export function createAlarm(clock: Pick<Clock, 'now'>): Alarm {
  return {
    async until(at, signal) {
      for (;;) {
        const restMs = Date.parse(at) - Date.parse(clock.now());
        if (restMs <= 0 || signal.aborted) return;
        try {
          await sleep(Math.min(restMs, LOOK_MS_MAX), undefined, { signal });
        } catch (error) {
          if (!signal.aborted) throw error;
        }
      }
    },
  };
}
