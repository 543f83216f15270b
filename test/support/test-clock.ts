/** A clock that a test moves; it wakes everyone waiting for a time that it has reached. */
import { setImmediate } from 'node:timers/promises';
import { plusMs, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import type { Alarm, Clock } from '../../core/ports/clock.ts';

export interface TestClock extends Clock, Alarm {
  advance(ms: number): void;
  /** Sets only the wall clock, forwards or backwards, as an administrator does. */
  set(now: Timestamp): void;
  /** The times that someone waits for now. */
  awaited(): readonly Timestamp[];
}

export function createTestClock(start: Timestamp = timestamp('2026-11-21T10:00:00.000Z')): TestClock {
  let now = start;
  let monotonicMs = 0;
  const waiting = new Set<{ readonly at: Timestamp; readonly wake: () => void }>();
  const move = (to: Timestamp): void => {
    now = to;
    for (const { at, wake } of waiting) if (at <= now) wake();
  };
  return {
    now: () => now,
    monotonicMs: () => monotonicMs,
    nextTurn: () => setImmediate(),
    advance: (ms) => {
      monotonicMs += ms;
      move(plusMs(now, ms));
    },
    set: move,
    awaited: () => [...waiting].map(({ at }) => at),
    until: (at, signal) =>
      new Promise((resolve) => {
        const waiter = { at, wake };
        function wake(): void {
          waiting.delete(waiter);
          signal.removeEventListener('abort', wake);
          resolve();
        }
        waiting.add(waiter);
        signal.addEventListener('abort', wake, { once: true });
        if (at <= now || signal.aborted) wake();
      }),
  };
}
