/** The read models' contract on the projections, in PostgreSQL. */
import { digest } from '../../adapters/node/digest.ts';
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import { createModels } from '../../projections/models.ts';
import { createReadModels } from '../../projections/read-models.ts';
import { createMemoryEventStore } from '../support/memory/event-store.ts';
import { createMemoryObjects } from '../support/memory/object-database.ts';
import { newDatabase } from '../support/read-model-database.ts';
import { Appender, startRunner } from '../support/read-models.ts';
import { readModelsContract } from './read-models.ts';

readModelsContract('in PostgreSQL', async (context) => {
  const database = await newDatabase(context);
  const events = createMemoryEventStore();
  const append = new Appender(events);
  const objects = createMemoryObjects();
  const complete = async (event: RecordedEvent): Promise<RecordedEvent> => event;
  const models = createModels({ digest, workflows: [], events, complete, objects: objects.database });
  const { runner } = await startRunner(context, { events, database, models: Object.values(models) });
  const reads = createReadModels({ digest, database, models, runner, clock: { now: () => append.now } });
  return { append, objects, reads };
});
