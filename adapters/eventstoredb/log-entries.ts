/**
 * The entries of EventStoreDB's log: Strata's events, and those that only have a position.
 *
 * Invariants: every event that has a position becomes an entry, whichever program wrote it: it may be the head.
 * Subscribers get the entries of an append together. They are next to each other in the log, so an entry that does not
 * continue an append ends it: a scavenge may have removed the rest, with a stream that was deleted.
 */
import { categoryOf, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { continuesAppend, missingOfAppend } from '../../core/kernel/whole-appends.ts';
import type { Log } from '../../core/ports/log.ts';
import type { RecordPlace } from '../../core/ports/read-mark.ts';
import { recordPlaceOf } from '../../core/runtime/read-mark.ts';
import { isSystemEvent, positionOf, type ReceivedEvent, toRecorded } from './event-form.ts';

/**
 * A subscriber gets at most this many entries in one batch, and the rest of the last append beside them. Internal: the
 * rest follows.
 */
export const BATCH_EVENTS_MAX = 1_000;

export interface LogEntry {
  readonly position: LogPosition;
  /** Null for an event that Strata did not write. */
  readonly event: RecordedEvent | null;
  /** The length of the event's data as JSON, which is about its size in bytes. */
  readonly sizeBytes: number;
}

/** Whether both events are of one append, with `next` right after `before` in the log. */
export function areOfOneAppend(
  before: RecordedEvent | null | undefined,
  next: RecordedEvent | null | undefined,
): boolean {
  return before != null && next != null && continuesAppend(before, next);
}

/** The entries from index `start` on: `BATCH_EVENTS_MAX` at most, and the rest of the last append. */
export function batchFrom(entries: readonly LogEntry[], start: number): readonly LogEntry[] {
  let end = Math.min(start + BATCH_EVENTS_MAX, entries.length);
  while (areOfOneAppend(entries[end - 1]?.event, entries[end]?.event)) end += 1;
  return entries.slice(start, end);
}

/** Takes entries one by one and returns them in whole appends. */
export interface AppendAssembler {
  /** Returns the entries whose append has ended; an empty list while more of the append is to arrive. */
  add(entry: LogEntry): readonly LogEntry[];
}

export function createAppendAssembler(): AppendAssembler {
  let open: LogEntry[] = [];
  return {
    add: (entry) => {
      const whole: LogEntry[] = [];
      if (!areOfOneAppend(open.at(-1)?.event, entry.event)) {
        // The log holds no more of the append that was open.
        whole.push(...open);
        open = [];
      }
      open.push(entry);
      if (entry.event === null || missingOfAppend(entry.event) === 0) {
        whole.push(...open);
        open = [];
      }
      return whole;
    },
  };
}

/** Logs a warning for an event that another program wrote: only Strata should write to this log. */
export function toLogEntry(received: ReceivedEvent, log: Log): LogEntry {
  const position = positionOf(received);
  if (isSystemEvent(received)) return { position, event: null, sizeBytes: 0 };
  const event = toRecorded(received);
  if (event !== null) return { position, event, sizeBytes: JSON.stringify(event.data).length };
  const { streamId: stream, revision } = received;
  log.warn({ stream, revision: String(revision) }, 'Passed over an event that Strata did not write');
  return { position, event: null, sizeBytes: 0 };
}

/** The events of some categories, or of all when `categories` is null. */
export function eventsOfCategories(
  entries: readonly LogEntry[],
  categories: ReadonlySet<string> | null,
): readonly RecordedEvent[] {
  const events: RecordedEvent[] = [];
  for (const { event } of entries) {
    if (event !== null && (categories === null || categories.has(categoryOf(event.stream)))) events.push(event);
  }
  return events;
}

/** The last record event; null when there is none. The log never prunes record events. */
export function lastRecordIn(entries: readonly LogEntry[]): RecordPlace | null {
  const last = entries.findLast(({ event }) => event?.isRecord === true)?.event ?? null;
  return last === null ? null : recordPlaceOf(last);
}
