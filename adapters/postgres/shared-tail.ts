/**
 * One look at the end of the log for all subscriptions that stand there.
 *
 * Must stay true: whoever looks gets what a query sent after its call has found; who stands further back, or was never
 * shown where it stands, looks for itself, with its own filter.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { categoryOf, type LogPosition } from '../../core/kernel/envelope.ts';
import type { EventId } from '../../core/kernel/ids.ts';
import type { Anchor, LogReader, Window } from './log-reader.ts';

export type ReadWindow = LogReader['readWindow'];

/** An append wakes every subscription in one go: their looks are gathered until the turn ends, and made as one. */
export function shareTail(readWindow: ReadWindow): ReadWindow {
  const gathering = new Map<EventId, Promise<Window>>();
  /** Where a look found the log's end last. */
  let tail: LogPosition | null = null;

  function together(from: Anchor, id: EventId): Promise<Window> {
    const begun = gathering.get(id);
    if (begun !== undefined) return begun;
    const look = nextTurn().then(() => {
      gathering.delete(id);
      return readWindow(from, null);
    });
    gathering.set(id, look);
    return look;
  }

  return async (from, categories) => {
    const atTail = tail !== null && from.position >= tail;
    const shared = atTail && from.id !== null ? await together(from, from.id) : null;
    const window = shared ?? (await readWindow(from, categories));
    const { end, reachedEnd } = window;
    if (reachedEnd && (tail === null || end.position > tail)) tail = end.position;
    if (shared === null || categories === null) return window;
    const wanted = new Set(categories);
    return { ...window, events: window.events.filter(({ stream }) => wanted.has(categoryOf(stream))) };
  };
}
