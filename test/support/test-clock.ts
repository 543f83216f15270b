/** A clock that stands still until a test moves it. */
import { plusMs, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';

export interface TestClock extends Clock {
  advance(ms: number): void;
  /** Sets the wall clock alone, back or forth, as an administrator does. */
  set(now: Timestamp): void;
}

export function createTestClock(start: Timestamp = timestamp('2026-11-21T10:00:00.000Z')): TestClock {
  let now = start;
  let monotonicMs = 0;
  return {
    now: () => now,
    monotonicMs: () => monotonicMs,
    advance: (ms) => {
      now = plusMs(now, ms);
      monotonicMs += ms;
    },
    set: (at) => {
      now = at;
    },
  };
}
