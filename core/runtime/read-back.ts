/** Reads a stream from one of its events back to its first. */
import type { RecordedEvent, StreamName } from '../kernel/envelope.ts';
import type { EventStore } from '../ports/event-store.ts';

/**
 * A small page, because each event may be almost as large as an append may be. Internal: the rest is read in further
 * pages.
 */
const PAGE_EVENTS_MAX = 100;

/**
 * Yields the event at the revision, then those before it. Reads a page after the events of the page before were taken.
 */
export async function* readBack(
  events: Pick<EventStore, 'readStream'>,
  stream: StreamName,
  revision: number,
): AsyncGenerator<RecordedEvent> {
  for (let from = revision; from >= 0; ) {
    const page = await events.readStream(stream, { direction: 'backwards', from, limit: PAGE_EVENTS_MAX });
    yield* page;
    if (page.length < PAGE_EVENTS_MAX) return;
    from -= page.length;
  }
}
