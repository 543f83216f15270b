/** Opens event stores, each test on its own database, and closes them when the test ends. */
import { randomBytes } from 'node:crypto';
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

/** Opens a plain connection, to read and change tables without the store. */
export async function openClient(context: Ending, connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  // Tests kill servers and connections; an error of a query is still thrown.
  client.on('error', () => {});
  await client.connect();
  cleanUp(context, () => client.end());
  return client;
}

/** Creates a database without any table, besides the test's own. */
export async function emptyDatabase(context: Ending): Promise<string> {
  const server = await openDatabase(context);
  const client = await openClient(context, server);
  const name = `strata_test_${randomBytes(8).toString('hex')}`;
  await client.query(`CREATE DATABASE ${name}`);
  cleanUp(context, () => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
