/**
 * Splits lists of events between appends, never inside one.
 *
 * Invariants: the events of one append are adjacent in every read of the log, and in every list that a filter by
 * stream or category made of one. So where an event does not continue the append of the event before it, that append
 * has ended, even if some of its events are no longer in the log.
 */
import type { LogPosition, RecordedEvent } from './envelope.ts';

type Placed = Pick<RecordedEvent, 'stream' | 'revision' | 'appendIndex' | 'appendCount'>;

/** Returns whether `next` is the event right after `before` in the same append. */
export function continuesAppend(before: Placed, next: Placed): boolean {
  return (
    next.appendIndex > 0 &&
    next.appendIndex === before.appendIndex + 1 &&
    next.appendCount === before.appendCount &&
    next.revision === before.revision + 1 &&
    next.stream === before.stream
  );
}

/** Returns how many events of the same append follow this one, in the direction of reading. */
export function missingOfAppend(
  { appendIndex, appendCount }: Placed,
  direction: 'forwards' | 'backwards' = 'forwards',
): number {
  return direction === 'forwards' ? appendCount - 1 - appendIndex : appendIndex;
}

/** Returns the events grouped by append, in order. */
export function wholeAppends(events: readonly RecordedEvent[]): readonly (readonly RecordedEvent[])[] {
  return batchesOf(events, 1);
}

/**
 * Returns the events in batches that end between appends. A batch has at most `eventsMax` events, and in addition those
 * that complete its last append. An empty list gives no batch.
 */
export function batchesOf(events: readonly RecordedEvent[], eventsMax: number): readonly (readonly RecordedEvent[])[] {
  const batches: (readonly RecordedEvent[])[] = [];
  for (let start = 0; start < events.length; ) {
    const end = endOfAppend(events, Math.min(start + eventsMax, events.length));
    batches.push(events.slice(start, end));
    start = end;
  }
  return batches;
}

/** Returns the events up to the position, and those after it that complete the append that contains the position. */
export function throughPosition(events: readonly RecordedEvent[], position: LogPosition): readonly RecordedEvent[] {
  const beyond = events.findIndex((event) => event.position > position);
  return beyond <= 0 ? (beyond === 0 ? [] : events) : events.slice(0, endOfAppend(events, beyond));
}

/**
 * Returns the first index, at or after `place` (1 or more), at which the list can be split without splitting an append.
 */
function endOfAppend(events: readonly RecordedEvent[], place: number): number {
  let end = place;
  for (; end < events.length; end += 1) {
    const [before, next] = [events[end - 1], events[end]];
    if (before === undefined || next === undefined || !continuesAppend(before, next)) break;
  }
  return end;
}
