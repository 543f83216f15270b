/** The contract of references to the vault on PostgreSQL, and tests that need its tables or two sessions. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresVault } from '../../adapters/postgres/vault.ts';
import { createPostgresVaultReferences } from '../../adapters/postgres/vault-references.ts';
import { plusMs } from '../../core/kernel/ids.ts';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { newAccount, newId, newStream } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { vaultReferencesContract } from './vault-references.ts';

async function open(context: Ending) {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return {
    pool,
    vault: createPostgresVault({ pool, masterKey: randomBytes(32) }),
    references: createPostgresVaultReferences(pool),
    age: async (spanMs: number) => {
      await pool.query("UPDATE vault_records SET put_at = put_at - $1 * interval '1 ms'", [spanMs]);
    },
  };
}

vaultReferencesContract('PostgreSQL', open);

test('a read mark that an older version saved has its record event at the mark’s position', async (t) => {
  const { pool, references } = await open(t);
  const [stream, eventId] = [newStream(), newId()];
  await pool.query('INSERT INTO vault_read_mark VALUES (true, 7, $1, 3, $2)', [stream, eventId]);
  const record = { position: 7n, stream, revision: 3, eventId };
  assert.deepEqual(await references.readUpTo(), { position: 7n, record });
});

test('a record that is put again while it is being removed stays', async (t) => {
  const { pool, vault, references, age } = await open(t);
  const account = newAccount();
  const ref = await vault.put(account, 'source-address', '192.0.2.1');
  await age(25 * 60 * 60_000);
  const putting = await pool.connect();
  await putting.query('BEGIN');
  await putting.query('UPDATE vault_records SET put_at = now() WHERE ref = $1', [ref]);
  const removing = references.removeUnnamed(plusMs(await references.now(), -24 * 60 * 60_000), 10);
  const waits = 'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = $1';
  while ((await pool.query(waits, ['Lock'])).rowCount === 0) await sleep(10);
  await putting.query('COMMIT');
  putting.release();
  assert.deepEqual(await removing, []);
  assert.equal(await vault.get(account, 'source-address', ref), '192.0.2.1');
});
