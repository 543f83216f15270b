/** The machine's clock. */
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';

export const systemClock: Clock = {
  now: () => new Date().toISOString() as Timestamp,
  monotonicMs: () => performance.now(),
};
