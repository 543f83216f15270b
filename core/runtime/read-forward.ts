/** Reads a stream from one of its events on to its last. */
import type { RecordedEvent, StreamName } from '../kernel/envelope.ts';
import type { EventStore } from '../ports/event-store.ts';

/**
 * A small page, because each event may be almost as large as an append may be. Internal: the rest is read in further
 * pages.
 */
const PAGE_EVENTS_MAX = 100;

/**
 * Yields the event at the revision, then those after it. Reads a page after the events of the page before were taken; a
 * reader of small events may ask for larger pages.
 */
export async function* readForward(
  events: Pick<EventStore, 'readStream'>,
  stream: StreamName,
  revision: number,
  pageEventsMax = PAGE_EVENTS_MAX,
): AsyncGenerator<RecordedEvent> {
  for (let from = revision; ; ) {
    const page = await events.readStream(stream, { direction: 'forwards', from, limit: pageEventsMax });
    yield* page;
    if (page.length < pageEventsMax) return;
    from += page.length;
  }
}
