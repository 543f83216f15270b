/** The session store's contract on PostgreSQL, one database for all its tests. */
import type pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresSessionStore } from '../../adapters/postgres/session-store.ts';
import { keepLog } from '../support/log.ts';
import { type TestDatabase, testDatabase } from '../support/postgres.ts';
import { sessionStoreContract } from './session-store.ts';

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await testDatabase();
  pool = createPool({ connectionString: database.connectionString, log: keepLog() });
});
afterAll(async () => {
  await pool.end();
  await database.close();
});

sessionStoreContract('PostgreSQL', async () => {
  await pool.query('DELETE FROM web_sessions');
  return createPostgresSessionStore(pool);
});
