/** Event stores on databases of their own, closed when their test ends. */
import pg from 'pg';
import {
  createPostgresEventStore,
  type PostgresEventStore,
  type PostgresEventStoreOptions,
} from '../../../adapters/postgres/event-store.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { type KeptLog, keepLog } from '../../support/log.ts';
import { testDatabase } from '../../support/postgres.ts';

export async function openDatabase(context: Ending): Promise<string> {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  return database.connectionString;
}

export function openStore(
  context: Ending,
  connectionString: string,
  options: Partial<PostgresEventStoreOptions> = {},
): { readonly store: PostgresEventStore; readonly log: KeptLog } {
  const log = keepLog();
  const store = createPostgresEventStore({ connectionString, log, ...options });
  cleanUp(context, () => store.close());
  return { store, log };
}

/** A plain connection, for looking behind the store's back. */
export async function openClient(context: Ending, connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  // Tests kill servers and connections; what a query itself meets is still thrown.
  client.on('error', () => {});
  await client.connect();
  cleanUp(context, () => client.end());
  return client;
}
