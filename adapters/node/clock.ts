/** The machine's clock. */
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';

export const systemClock: Clock = {
  // The form is ECMA-262's own, for every date that a clock shows: reading it back would cost more than making it.
  now: () => new Date().toISOString() as Timestamp,
  monotonicMs: () => performance.now(),
};
