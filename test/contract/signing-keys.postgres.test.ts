/** The contract of signing keys on PostgreSQL, and what its table reveals. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'vitest';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresSigningKeys } from '../../adapters/postgres/signing-keys.ts';
import { SigningKeysError } from '../../core/ports/signing-keys.ts';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { keySet, signingKeysContract } from './signing-keys.ts';

const MASTER_KEY = randomBytes(32);

async function openPool(context: Ending) {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return pool;
}

signingKeysContract('PostgreSQL', async (context) =>
  createPostgresSigningKeys({ pool: await openPool(context), masterKey: MASTER_KEY }),
);

// The attack: who can read or write the database signs tokens for every account.
test('the table of signing keys shows no key, and takes none that the master key did not seal', async (context) => {
  const pool = await openPool(context);
  const store = createPostgresSigningKeys({ pool, masterKey: MASTER_KEY });
  await store.add(keySet(1));
  await store.add(keySet(2, 'other'));
  const { rows } = await pool.query<{ sealed: Buffer }>('SELECT * FROM signing_keys');
  for (const { sealed } of rows) assert.doesNotMatch(sealed.toString('latin1'), /secret|RS256|2026/);
  const isTampered = (error: unknown) => {
    assert.ok(error instanceof SigningKeysError && error.code === 'signing-keys-tampered');
    assert.doesNotMatch(JSON.stringify(error, Object.getOwnPropertyNames(error)), /secret|RS256/);
    return error.cause === undefined;
  };
  await assert.rejects(createPostgresSigningKeys({ pool, masterKey: randomBytes(32) }).list(), isTampered);
  // A set of another generation in its place, so that an old key signs again.
  await pool.query('UPDATE signing_keys SET sealed = (SELECT sealed FROM signing_keys WHERE generation = 1)');
  await assert.rejects(store.list(), isTampered);
});

test('signing keys that cannot be reached are an outage', async (context) => {
  const pool = createPool({ connectionString: 'postgres://localhost:1/none', log: keepLog() });
  cleanUp(context, () => pool.end());
  const listed = createPostgresSigningKeys({ pool, masterKey: MASTER_KEY }).list();
  await assert.rejects(listed, { name: 'SigningKeysError', code: 'signing-keys-unavailable' });
});
