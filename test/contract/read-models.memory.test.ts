/** The read models' contract on the in-memory implementation. */
import { digest } from '../../adapters/node/digest.ts';
import { createMemoryEventStore } from '../support/memory/event-store.ts';
import { createMemoryObjects } from '../support/memory/object-database.ts';
import { createMemoryReadModels } from '../support/memory/read-models.ts';
import { Appender } from '../support/read-models.ts';
import { readModelsContract } from './read-models.ts';

readModelsContract('in memory', async () => {
  const events = createMemoryEventStore();
  const append = new Appender(events);
  const objects = createMemoryObjects();
  const clock = { now: () => append.now };
  const reads = createMemoryReadModels({ events, digest, clock, objects });
  return { append, objects, reads };
});
