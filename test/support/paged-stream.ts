/** A stream of many appends, and where each page began that somebody read of it. */
import type { StreamName } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { newEvent, newStream } from './events.ts';
import { createMemoryEventStore } from './memory/event-store.ts';

export interface PagedStream {
  readonly stream: StreamName;
  readonly events: Pick<EventStore, 'readStream'>;
  readonly from: readonly (number | undefined)[];
}

/** Appends of these sizes. */
export async function pagedStream(...counts: readonly number[]): Promise<PagedStream> {
  const store = createMemoryEventStore();
  const stream = newStream();
  let revision = -1;
  for (const count of counts) {
    const events = Array.from({ length: count }, () => newEvent());
    await store.append({ stream, expected: revision < 0 ? 'none' : revision, events });
    revision += count;
  }
  const from: (number | undefined)[] = [];
  const events: Pick<EventStore, 'readStream'> = {
    readStream: (name, options) => {
      from.push(options.from);
      return store.readStream(name, options);
    },
  };
  return { stream, events, from };
}
