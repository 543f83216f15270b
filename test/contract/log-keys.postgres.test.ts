/** The contract of log keys on PostgreSQL, and what their table reveals. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'vitest';
import { createPostgresLogKeys } from '../../adapters/postgres/log-keys.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { LogKeysError } from '../../core/ports/log-keys.ts';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { logKey, logKeysContract } from './log-keys.ts';

const MASTER_KEY = randomBytes(32);

async function openPool(context: Ending) {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return pool;
}

logKeysContract('PostgreSQL', async (context) =>
  createPostgresLogKeys({ pool: await openPool(context), masterKey: MASTER_KEY }),
);

// The attack: who can read or write the database signs checkpoints of a history of his own.
test('the table of log keys shows no key, and takes none that the master key did not seal', async (context) => {
  const pool = await openPool(context);
  const store = createPostgresLogKeys({ pool, masterKey: MASTER_KEY });
  for (const generation of [1, 2]) await store.add(logKey(generation));
  const { rows } = await pool.query<{ sealed: Buffer }>('SELECT * FROM log_keys');
  for (const { sealed } of rows) assert.doesNotMatch(sealed.toString('latin1'), /secret|1f1f|strata/);
  const isTampered = (error: unknown) => {
    assert.ok(error instanceof LogKeysError && error.code === 'log-keys-tampered');
    assert.doesNotMatch(JSON.stringify(error, Object.getOwnPropertyNames(error)), /secret|1f1f/);
    return error.cause === undefined;
  };
  await assert.rejects(createPostgresLogKeys({ pool, masterKey: randomBytes(32) }).list(), isTampered);
  await pool.query('UPDATE log_keys SET sealed = (SELECT sealed FROM log_keys WHERE generation = 1)');
  await assert.rejects(store.list(), isTampered);
});

test('log keys that cannot be reached are an outage', async (context) => {
  const pool = createPool({ connectionString: 'postgres://localhost:1/none', log: keepLog() });
  cleanUp(context, () => pool.end());
  const listed = createPostgresLogKeys({ pool, masterKey: MASTER_KEY }).list();
  await assert.rejects(listed, { name: 'LogKeysError', code: 'log-keys-unavailable' });
});
