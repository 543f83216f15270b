/** A log from which whole streams were pruned: no read and no subscription returns their events. */
import type { RecordedEvent, StreamName } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';

export function withoutStreams(store: EventStore, pruned: ReadonlySet<StreamName>): EventStore {
  const left = (events: readonly RecordedEvent[]): readonly RecordedEvent[] =>
    events.filter(({ stream }) => !pruned.has(stream));
  return {
    ...store,
    readStream: async (stream, options) => (pruned.has(stream) ? [] : store.readStream(stream, options)),
    readAll: async (after, limit) => {
      const all = left(await store.readAll(after, Number.MAX_SAFE_INTEGER));
      return all.slice(0, limit);
    },
    subscribe: (options) =>
      store.subscribe({ ...options, onEvents: (events, ...passed) => options.onEvents(left(events), ...passed) }),
  };
}
