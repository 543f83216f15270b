/**
 * The edges of an export: which log times it proves, and the guards that prove it.
 *
 * Invariants: what a slice says of its own range is believed only as far as its guards show it. Log time is counted
 * from the first line on: nothing before a guard can lie in the range, if no node's clock was more than a minute off.
 * Memory grows with the guards of a slice that has no entry, by their log times, and with no other line.
 */
import { isObject, type JsonObject } from './canonical.ts';

/** Twice how far a clock may be off. */
const GUARD_MS = 120_000;

export interface ShownEntry {
  readonly sequence: number;
  readonly occurredAt: string;
}

/** The log times that an export shows without gaps. */
export interface ProvedRange {
  /** Included; null for the log's start. */
  readonly since: string | null;
  /** Not included; null only for a log without entries. */
  readonly until: string | null;
}

/** What the last line of a slice says of it. */
export interface SliceEnding {
  readonly since: string | null;
  readonly until: string | null;
  readonly before: number;
  readonly behind: number;
}

/** Throws for the line that is wrong. */
type Fault = (message: string, line?: number) => Error;

export interface Edges {
  /** Takes the next line. */
  add(entry: ShownEntry, isGuard: boolean, line: number): void;
  /** Returns what a whole log proves: all up to the log time of its last entry. */
  ofWhole(): ProvedRange;
  /** Returns what a slice of form 2 proves, of a log of this size. */
  ofSlice(ending: SliceEnding, size: number): ProvedRange;
  readonly guards: number;
}

/** An entry at an edge, with its log time. */
interface Place extends ShownEntry {
  readonly logTime: string;
  readonly line: number;
}

export function createEdges(fault: Fault): Edges {
  let first: Place | null = null;
  let last: Place | null = null;
  /** The first and the last entry of the slice itself. */
  let own: { readonly first: Place; readonly last: Place } | null = null;
  let guards = 0;
  let behind = 0;
  /** The guards before the first entry. Only an entry shows that they do not stand behind the slice. */
  let leading: string[] = [];
  let lastBefore: string | null = null;
  let firstBehind: Place | null = null;

  function splitGuards(ending: SliceEnding): void {
    const expected = own === null ? leading.length : guards;
    const isSplit = own === null || ending.behind === behind;
    if (ending.before + ending.behind !== expected || !isSplit) throw fault('its `guards` does not count its guards');
    if (own !== null) return;
    lastBefore = leading[ending.before - 1] ?? null;
    const at = leading[ending.before];
    firstBehind = at === undefined || first === null ? null : { ...first, logTime: at, line: ending.before + 1 };
  }

  return {
    get guards() {
      return guards;
    },
    add(entry, isGuard, line) {
      const before: Place | null = last;
      const logTime = before !== null && before.logTime > entry.occurredAt ? before.logTime : entry.occurredAt;
      const place: Place = { ...entry, logTime, line };
      first ??= place;
      last = place;
      if (!isGuard) {
        if (behind > 0) throw fault('an entry of the slice stands behind a guard that ends it');
        if (own === null) {
          lastBefore = leading.at(-1) ?? null;
          leading = [];
        }
        own = { first: own?.first ?? place, last: place };
        return;
      }
      guards += 1;
      if (own === null) {
        leading.push(logTime);
        return;
      }
      behind += 1;
      firstBehind ??= place;
    },
    ofWhole: () => ({ since: null, until: last?.logTime ?? null }),
    ofSlice(ending, size) {
      splitGuards(ending);
      return provedBy({ first, last, own, lastBefore, firstBehind, fault }, ending, size);
    },
  };
}

interface Shown {
  readonly first: Place | null;
  readonly last: Place | null;
  readonly own: { readonly first: Place; readonly last: Place } | null;
  /** The log time of the last guard before the slice. */
  readonly lastBefore: string | null;
  readonly firstBehind: Place | null;
  readonly fault: Fault;
}

function provedBy(shown: Shown, ending: SliceEnding, size: number): ProvedRange {
  const { first, last, own, lastBefore, firstBehind, fault } = shown;
  const { since, until } = ending;
  if (first === null || last === null) {
    if (size > 0) throw fault('it has no guards: a slice of nothing shows its neighbours');
    return { since, until: null };
  }
  if (lastBefore !== null && (since === null || lastBefore >= since)) {
    throw fault(`a guard before the slice has a log time of it: ${lastBefore}`, ending.before);
  }
  if (firstBehind !== null && (until === null || firstBehind.logTime < until)) {
    throw fault(`a guard behind the slice has a log time of it: ${firstBehind.logTime}`, firstBehind.line);
  }
  const outside = own === null ? null : outsideOf(own, ending);
  if (outside !== null) throw fault(`its log time ${outside.logTime} is not of the slice`, outside.line);
  const isOld = ending.before > 0 && since !== null && ms(first.occurredAt) < ms(since) - GUARD_MS;
  if (first.sequence > 0 && !isOld) {
    throw fault('the slice begins neither with the log nor with a guard that is two minutes older', first.line);
  }
  const isNew = ending.behind > 0 && until !== null && ms(last.occurredAt) > ms(until) + GUARD_MS;
  const isLogsEnd = last.sequence === size - 1;
  if (!isLogsEnd && !isNew) {
    throw fault('the slice ends neither with the log nor with a guard that is two minutes later', last.line);
  }
  const isBeyond = isLogsEnd && (until === null || until > last.logTime);
  return { since, until: isBeyond ? last.logTime : until };
}

function outsideOf(own: { readonly first: Place; readonly last: Place }, { since, until }: SliceEnding): Place | null {
  if (since !== null && own.first.logTime < since) return own.first;
  return until !== null && own.last.logTime >= until ? own.last : null;
}

function ms(instant: string): number {
  return Date.parse(instant);
}

/** Whether the text is a time as entries have it: UTC, to the millisecond, of the years 1 to 9999. */
export function isInstant(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) || text < '0001') return false;
  const at = new Date(text);
  // A day that its month has not is another day.
  return !Number.isNaN(at.getTime()) && at.toISOString() === text;
}

const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;

/** Reads a time of RFC 3339, rounded down to the millisecond, in the form of entries; null for any other text. */
export function parseInstant(text: string): string | null {
  const [, local, fraction = '', offset] = TIME.exec(text) ?? [];
  if (local === undefined || offset === undefined) return null;
  const clock = `${local.toUpperCase()}.${fraction.slice(0, 3).padEnd(3, '0')}`;
  if (!isInstant(`${clock}Z`)) return null;
  const at = new Date(`${clock}${offset.toUpperCase()}`);
  if (Number.isNaN(at.getTime())) return null;
  const utc = at.toISOString();
  return isInstant(utc) ? utc : null;
}

/** Returns what a last line of form 2 says of its slice; null if it has another form. */
export function sliceEnding({ form, guards, since, until }: JsonObject): SliceEnding | null {
  if (form !== 2 || guards === undefined || !isObject(guards) || Object.keys(guards).length !== 2) return null;
  const { before, behind } = guards;
  if (!isCount(before) || !isCount(behind) || !isBound(since) || !isBound(until)) return null;
  return { since, until, before, behind };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isBound(value: unknown): value is string | null {
  return value === null || (typeof value === 'string' && isInstant(value));
}
