/**
 * Log time: what "as of T" means in an account's log.
 *
 * The times of events are ordered only within a stream, and an account's log is made of many streams. So each entry has
 * a log time: the latest `occurredAt` among it and all entries before it. The log as of T consists of the entries whose
 * log time is not later than T.
 *
 * Invariants: log time never decreases along a log, so every T selects a prefix of the log, the same wherever it is
 * computed. The events of one append have the same time, so no T selects part of an append.
 */
import { LOG_START, type LogPosition, type RecordedEvent } from '../kernel/envelope.ts';
import { type AccountId, later, type Timestamp } from '../kernel/ids.ts';

/** Returns whether the event is an entry of the account's log. */
export function isEntryOf(account: AccountId, { accountId, isRecord }: RecordedEvent): boolean {
  return isRecord && accountId === account;
}

/** A prefix of an account's log. */
export interface PlaceAsOf {
  /** How many entries the prefix has. */
  readonly entries: number;
  /** The position of its last entry; `LOG_START` if it has none. */
  readonly position: LogPosition;
  /** The log time of its last entry; null if it has none. */
  readonly logTime: Timestamp | null;
}

const BEGINNING: PlaceAsOf = { entries: 0, position: LOG_START, logTime: null };

/** Returns the prefix extended by the log's next entry. */
export function placeAfter(
  { entries, logTime }: PlaceAsOf,
  { position, occurredAt }: Pick<RecordedEvent, 'position' | 'occurredAt'>,
): PlaceAsOf {
  return { entries: entries + 1, position, logTime: later(occurredAt, logTime) };
}

/**
 * Returns the prefix of an account's log as of a moment. `entries` is the log in log order: from its first entry, or
 * from right after `from`, a place that an earlier call or a read model kept. It is read only up to the first entry
 * with a later log time. For a moment before that of `from` it returns `from`: the caller must then start from an
 * earlier place.
 */
export async function placeAsOf(
  entries: AsyncIterable<RecordedEvent> | Iterable<RecordedEvent>,
  at: Timestamp,
  from: PlaceAsOf = BEGINNING,
): Promise<PlaceAsOf> {
  let place = from;
  for await (const entry of entries) {
    const next = placeAfter(place, entry);
    if (next.logTime !== null && next.logTime > at) return place;
    place = next;
  }
  return place;
}
