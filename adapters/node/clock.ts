/** The machine's clock. */
import { timestamp } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';

export const systemClock: Clock = {
  now: () => timestamp(new Date().toISOString()),
  monotonicMs: () => performance.now(),
};
