/** Gives each test of the read models a database of its own. */
import type pg from 'pg';
import { createPool } from '../../adapters/postgres/pool.ts';
import { cleanUp, type Ending } from './cleanup.ts';
import { keepLog } from './log.ts';
import { testDatabase } from './postgres.ts';

/** Returns a pool as the server makes it, on an empty database that is dropped after the test. */
export async function newDatabase(context: Ending): Promise<pg.Pool> {
  const { connectionString, close } = await testDatabase();
  const pool = createPool({ connectionString, log: keepLog(), connectionsMax: 20 });
  cleanUp(context, close);
  cleanUp(context, () => pool.end());
  return pool;
}
