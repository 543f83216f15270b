/** A log that was restored to an earlier state, over the ports of a test. */
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { LOG_START } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { createMemoryEventStore } from './memory/event-store.ts';

/** Returns a log of its own that holds the events up to the position. */
export async function restoredLog(events: EventStore, position: LogPosition): Promise<EventStore> {
  const restored = createMemoryEventStore();
  for (const event of await events.readAll(LOG_START, 10_000)) {
    if (event.position > position) break;
    const expected = event.revision === 0 ? 'none' : event.revision - 1;
    await restored.append({ stream: event.stream, expected, events: [event] });
  }
  return restored;
}
