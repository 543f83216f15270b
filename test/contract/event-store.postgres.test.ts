/** The event store's contract on PostgreSQL. */
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { eventStoreContract } from './event-store.ts';

eventStoreContract('PostgreSQL', async () => {
  const database = await testDatabase();
  const store = createPostgresEventStore({ connectionString: database.connectionString, log: keepLog() });
  return {
    store,
    close: async () => {
      await store.close();
      await database.close();
    },
  };
});
