/** The machine's clock. */
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';

let lastMs = Number.NaN;
let last = '' as Timestamp;

/** Asked several times a request: it is written once a millisecond. */
function now(): Timestamp {
  const ms = Date.now();
  if (ms === lastMs) return last;
  lastMs = ms;
  // The form is ECMA-262's own, for every date that a clock shows: reading it back would cost more than making it.
  last = new Date(ms).toISOString() as Timestamp;
  return last;
}

export const systemClock: Clock = {
  now,
  monotonicMs: () => performance.now(),
};
