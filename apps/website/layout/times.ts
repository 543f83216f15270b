/** Times on pages: relative for reading, with the whole UTC time in `datetime` and `title`. */
import { parseMoment } from '../../../core/audit/moment.ts';
import { parseTimestamp, type Timestamp } from '../../../core/kernel/ids.ts';
import { type Html, html } from './html.ts';

const UNITS: readonly (readonly [name: string, seconds: number])[] = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** A time element that reads `2 hours ago`. The script page.js keeps it current. */
export function timeAgo(at: Timestamp, now: Timestamp): Html {
  return html`<time datetime="${at}" title="${utc(at)}" data-relative>${relativeTime(at, now)}</time>`;
}

function relativeTime(at: Timestamp, now: Timestamp): string {
  const seconds = Math.round((Date.parse(now) - Date.parse(at)) / 1_000);
  const distance = Math.abs(seconds);
  if (distance < 5) return 'just now';
  const [name, length] = UNITS.find(([, unit]) => distance >= unit) ?? ['second', 1];
  const count = Math.floor(distance / length);
  const text = `${count} ${name}${count === 1 ? '' : 's'}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** Returns the time as `2026-11-22 09:14:00 UTC`. */
function utc(at: Timestamp): string {
  return `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;
}

/** Reads a time that a person wrote: a day is its first moment, and a time without an offset is UTC. */
export function timeWritten(text: string): Timestamp | null {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return parseTimestamp(`${text}T00:00:00.000Z`);
  const minute = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d)?$/.exec(text);
  if (minute !== null) return parseTimestamp(`${minute[1]}${minute[2] ?? ':00'}.000Z`);
  const moment = parseMoment(text);
  return moment !== null && 'at' in moment ? moment.at : null;
}

/** What a field says of a text that is no time. */
export const NO_TIME = 'Write a time such as 2026-11-03 or 2026-11-03T14:02';

const SPANS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
] as const;

/** Returns how long something is kept, such as `30 days`: whole days, or hours where it is less than a day. */
export function spanText(ms: number): string {
  const [name, length] = SPANS.find(([, unit]) => ms >= unit) ?? SPANS[1];
  const count = Math.max(1, Math.floor(ms / length));
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}
