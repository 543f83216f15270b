/** The machine's clock. */
import { setImmediate } from 'node:timers/promises';
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';

let lastMs = Number.NaN;
let last = '' as Timestamp;

/** Called several times a request, so it formats the time only once a millisecond. */
function now(): Timestamp {
  const ms = Date.now();
  if (ms === lastMs) return last;
  lastMs = ms;
  // ECMA-262 fixes this form for every date that a clock shows. Parsing it again would cost more than formatting it.
  last = new Date(ms).toISOString() as Timestamp;
  return last;
}

export const systemClock: Clock = {
  now,
  monotonicMs: () => performance.now(),
  nextTurn: () => setImmediate(),
};
