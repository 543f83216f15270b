/**
 * One query at the end of the log for all subscriptions that have read up to there.
 *
 * Invariants: a caller gets the result of a query that was sent after its call. A subscription that is further
 * back, or that does not know the id of the event at its position, runs its own query with its own filter. Before the
 * first event of the log there is no id to know.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { categoryOf, LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import type { EventId } from '../../core/kernel/ids.ts';
import type { Anchor, LogReader, Window } from './log-reader.ts';
import type { OwnTail } from './own-tail.ts';

export type ReadWindow = LogReader['readWindow'];

/**
 * Wraps `readWindow`. An append or a poll wakes all subscriptions of the node at the same time, so reads from the same
 * event are collected until the current turn of the event loop ends, and one query then serves them all.
 */
export function shareTail(readWindow: ReadWindow, own: Pick<OwnTail, 'behind'>): ReadWindow {
  /** The reads that wait for the end of the turn, by the id of their anchor. */
  const pendingReads = new Map<EventId | null, Promise<Window>>();
  /** The furthest end of the log that a read has found. */
  let tail: LogPosition | null = null;

  function readShared(from: Anchor): Promise<Window> {
    const { id } = from;
    const pending = pendingReads.get(id);
    if (pending !== undefined) return pending;
    const read = nextTurn().then(() => {
      pendingReads.delete(id);
      return readWindow(from, null);
    });
    pendingReads.set(id, read);
    return read;
  }

  return async (from, categories) => {
    const known = own.behind(from, categories);
    if (known !== null) {
      if (tail === null || known.end.position > tail) tail = known.end.position;
      return known;
    }
    const atTail = tail !== null && from.position >= tail;
    const isKnown = from.id !== null || from.position === LOG_START;
    const shared = atTail && isKnown ? await readShared(from) : null;
    const window = shared ?? (await readWindow(from, categories));
    const { end, reachedEnd } = window;
    if (reachedEnd && (tail === null || end.position > tail)) tail = end.position;
    if (shared === null || categories === null) return window;
    const wanted = new Set(categories);
    return { ...window, events: window.events.filter(({ stream }) => wanted.has(categoryOf(stream))) };
  };
}
