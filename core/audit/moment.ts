/**
 * A moment of the past as people write it: a time in RFC 3339 with any offset, the same without separators, or the id
 * of an event. A folder's name on Windows may not hold a colon, so Git URLs use the form without separators.
 *
 * Invariants: a time is rounded down to the millisecond, as the times of events are. So a moment never includes an
 * event that is later than what was written.
 */
import { type EventId, parseTimestamp, parseUuid, plusMs, type Timestamp } from '../kernel/ids.ts';

export type Moment =
  | { readonly at: Timestamp }
  /** With this event. */
  | { readonly event: EventId };

const TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;
const TIME_WITHOUT_SEPARATORS =
  /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(?:\.(\d+))?(?:Z|([+-])([01]\d|2[0-3]):?([0-5]\d))$/i;
const MINUTE_MS = 60_000;

/** Returns null for a text that is no moment. */
export function parseMoment(text: string): Moment | null {
  const event = parseUuid<EventId>(text);
  if (event !== null) return { event };
  const at = parseTime(text);
  return at === null ? null : { at };
}

function parseTime(text: string): Timestamp | null {
  const parts = TIME.exec(text) ?? TIME_WITHOUT_SEPARATORS.exec(text);
  if (parts === null) return null;
  const [, year, month, day, hour, minute, second, fraction = '', sign = '+', hours = '0', minutes = '0'] = parts;
  // A leap second (RFC 3339, section 5.7) is the one before the next minute.
  const isLeap = second === '60';
  const ms = fraction.slice(0, 3).padEnd(3, '0');
  const local = parseTimestamp(`${year}-${month}-${day}T${hour}:${minute}:${isLeap ? '59' : second}.${ms}Z`);
  if (local === null) return null;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS * (sign === '-' ? -1 : 1);
  const toUtcMs = (isLeap ? 1_000 : 0) - offsetMs;
  // Timestamps end with the years 1 and 9999.
  if (toUtcMs !== 0 && (year === '0001' || year === '9999')) return null;
  return toUtcMs === 0 ? local : plusMs(local, toUtcMs);
}

/** Returns the moment as it stands in URLs. `parseMoment` reads it. */
export function momentInUrl(moment: Moment): string {
  return 'at' in moment ? timeInUrl(moment.at) : moment.event;
}

/** Returns the time in the form without separators, for URLs. Milliseconds are left out where there are none. */
export function timeInUrl(at: Timestamp): string {
  return at.replace('.000Z', 'Z').replaceAll(/[-:]/g, '');
}
