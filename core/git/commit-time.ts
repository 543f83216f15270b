/** The time of a commit as a `Timestamp`: git stores seconds since the epoch, and accepts any number of them. */
import { msBetween, plusMs, type Timestamp, timestamp } from '../kernel/ids.ts';

const EPOCH = timestamp('1970-01-01T00:00:00.000Z');
/** The last second of the year 9999: RFC 3339 has no later times, but commits may. */
const SECONDS_MAX = 253_402_300_799;

/** Converts seconds since the epoch; times outside 1970 to 9999 become the first or last second of that span. */
export function commitTime(seconds: number): Timestamp {
  return plusMs(EPOCH, Math.min(Math.max(seconds, 0), SECONDS_MAX) * 1_000);
}

/** Converts a time to seconds since the epoch, negative before it. */
export function commitSeconds(at: Timestamp): number {
  return Math.floor(msBetween(EPOCH, at) / 1_000);
}
