/**
 * Waits until the machine's clock shows a time.
 *
 * Invariants: the clock is read again at least every `CHECK_INTERVAL_MS_MAX`, so that an alarm is late by no more
 * than that after the clock was changed or the machine slept, and never early.
 */
import type { Alarm, Clock } from '../../core/ports/clock.ts';
import { pause } from './pause.ts';

/**
 * The longest time between two looks at the clock. Internal: it is how late an alarm may be after the clock was
 * changed.
 */
const CHECK_INTERVAL_MS_MAX = 30_000;

export function createAlarm(clock: Pick<Clock, 'now'>): Alarm {
  return {
    async until(at, signal) {
      for (;;) {
        const restMs = Date.parse(at) - Date.parse(clock.now());
        if (restMs <= 0 || signal.aborted) return;
        await pause(Math.min(restMs, CHECK_INTERVAL_MS_MAX), signal);
      }
    },
  };
}
