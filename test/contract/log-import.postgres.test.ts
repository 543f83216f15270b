/** Moving a log into PostgreSQL. */
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { cleanUp } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { logImportContract } from './log-import.ts';

logImportContract('PostgreSQL', async (context) => {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const store = createPostgresEventStore({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => store.close());
  return store;
});
