/** Reads streams at the pace of the verification, so that whoever reads a stream on needs to know nothing of it. */
import { leafText } from '../../audit/entry.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { Pace } from './pace.ts';

export function pacedStreams(events: Pick<EventStore, 'readStream'>, pace: Pace): Pick<EventStore, 'readStream'> {
  return {
    async readStream(stream, options) {
      const { page } = await pace.run(async () => {
        const read = await events.readStream(stream, options);
        return { page: read, sizeBytes: read.reduce((sum, event) => sum + leafText(event).length, 0) };
      });
      return page;
    },
  };
}
