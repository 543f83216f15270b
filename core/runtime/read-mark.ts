/**
 * Checkpoints of policies: how far a policy has read the log, and whether the log is still the one that it read.
 *
 * Invariants: a mark is proven by a record event, so that pruning operational events neither invalidates it nor
 * sends a policy back to the log's start.
 */
import type { LogPosition, RecordedEvent } from '../kernel/envelope.ts';
import type { EventStore } from '../ports/event-store.ts';
import type { ReadMark, RecordPlace } from '../ports/read-mark.ts';

/** Returns the place of the last record event in a list in log order; null if there is none. */
export function lastRecordOf(events: readonly RecordedEvent[]): RecordPlace | null {
  const last = events.findLast(({ isRecord }) => isRecord);
  return last === undefined ? null : recordPlaceOf(last);
}

export function recordPlaceOf({ position, stream, revision, id }: RecordedEvent): RecordPlace {
  return { position, stream, revision, eventId: id };
}

/**
 * Returns the mark after a policy read on to a position; `lastRecord` is the last record event in between, or null.
 * Returns null until the policy has read a record event: nothing could prove such a mark, and there is little to read
 * again.
 */
export function markAfter(
  before: Pick<ReadMark, 'record'> | null,
  position: LogPosition,
  lastRecord: RecordPlace | null,
): ReadMark | null {
  const record = lastRecord ?? before?.record;
  return record === undefined ? null : { position, record };
}

/**
 * Returns the mark if this log is still the one that the policy read: the record event is at its place, and the log
 * reaches as far as the mark. If the log lost only operational events at its end, the returned mark is at the record
 * event. Returns null if the record event is not there: a restored log may have lost it, and an imported log gives it
 * another position.
 */
export async function provenMark(
  events: Pick<EventStore, 'readStream' | 'head'>,
  mark: ReadMark,
): Promise<ReadMark | null> {
  const { stream, revision, eventId, position } = mark.record;
  const [event] = await events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
  if (event?.id !== eventId || event.position !== position) return null;
  return (await events.head()) < mark.position ? { ...mark, position } : mark;
}
