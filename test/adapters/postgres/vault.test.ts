/** Attacks on the vault by someone who can read or write its tables. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { createPostgresVault } from '../../../adapters/postgres/vault.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { newAccount } from '../../support/events.ts';
import { keepLog } from '../../support/log.ts';
import { openDatabase } from './open-store.ts';

async function openVault(context: Ending) {
  const connectionString = await openDatabase(context);
  const pool = createPool({ connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  const masterKey = randomBytes(32);
  return { pool, masterKey, vault: createPostgresVault({ pool, masterKey }) };
}

const tampered = { code: 'record-tampered' };

describe('the vault, when an attacker has its database,', () => {
  test('reveals in its tables neither a value nor that two values are equal', async (context) => {
    const { pool, vault } = await openVault(context);
    for (const account of [newAccount(), newAccount()]) await vault.put(account, 'email', 'canary@example.org');
    const { rows } = await pool.query('SELECT * FROM vault_records JOIN vault_keys USING (account_id)');
    assert.equal(rows.length, 2);
    const texts = rows.map((row) => JSON.stringify(row) + Buffer.concat([row.sealed, row.lookup]).toString('latin1'));
    for (const text of texts) assert.doesNotMatch(text, /canary/);
    for (const column of ['ref', 'lookup', 'sealed', 'wrapped_key']) {
      assert.notDeepEqual(rows[0][column], rows[1][column], column);
    }
  });

  test('detects a changed record or key', async (context) => {
    const { pool, vault } = await openVault(context);
    for (const change of [
      'UPDATE vault_records SET sealed = set_byte(sealed, 50, get_byte(sealed, 50) # 1)',
      'UPDATE vault_records SET sealed = substr(sealed, 1, length(sealed) - 1)',
      "UPDATE vault_records SET sealed = ''",
      'UPDATE vault_keys SET wrapped_key = set_byte(wrapped_key, 40, get_byte(wrapped_key, 40) # 1)',
    ]) {
      const account = newAccount();
      const ref = await vault.put(account, 'webhook-secret', 'a secret of some length');
      await pool.query(`${change} WHERE account_id = $1`, [account]);
      await assert.rejects(vault.get(account, 'webhook-secret', ref), tampered, change);
    }
  });

  test('detects a record that was moved to another field, reference or account', async (context) => {
    const { pool, vault } = await openVault(context);
    const account = newAccount();
    const seed = await vault.put(account, 'totp-seed', 'seed');
    const agent = await vault.put(account, 'user-agent', 'agent');
    await pool.query("UPDATE vault_records SET field = 'user-agent' WHERE ref = $1", [seed]);
    await assert.rejects(vault.get(account, 'user-agent', seed), tampered);
    await pool.query(
      `UPDATE vault_records SET sealed = (SELECT sealed FROM vault_records WHERE ref = $1) WHERE ref = $2`,
      [seed, agent],
    );
    await assert.rejects(vault.get(account, 'user-agent', agent), tampered);

    const [victim, attacker] = [newAccount(), newAccount()];
    const secret = await vault.put(victim, 'bucket-access', 'key');
    await vault.put(attacker, 'bucket-access', 'mine');
    await pool.query('DELETE FROM vault_records WHERE account_id = $1', [attacker]);
    await pool.query('UPDATE vault_records SET account_id = $1 WHERE ref = $2', [attacker, secret]);
    await assert.rejects(vault.get(attacker, 'bucket-access', secret), tampered);
    await pool.query(
      `UPDATE vault_keys SET wrapped_key = (SELECT wrapped_key FROM vault_keys WHERE account_id = $1)
       WHERE account_id = $2`,
      [victim, attacker],
    );
    await assert.rejects(vault.get(attacker, 'bucket-access', secret), tampered);
  });

  test('opens nothing with another master key', async (context) => {
    const { pool, vault } = await openVault(context);
    const account = newAccount();
    const ref = await vault.put(account, 'email', 'a@example.org');
    const other = createPostgresVault({ pool, masterKey: randomBytes(32) });
    await assert.rejects(other.get(account, 'email', ref), tampered);
    await assert.rejects(other.put(account, 'email', 'b@example.org'), tampered);
    assert.notEqual(await other.fingerprint('email', 'x'), await vault.fingerprint('email', 'x'));
  });
});

describe('the vault', () => {
  test('keeps neither key nor record of an erased account, also against concurrent puts', async (context) => {
    const { pool, vault } = await openVault(context);
    for (let round = 0; round < 5; round++) {
      const account = newAccount();
      const puts = Array.from({ length: 8 }, (_, n) => vault.put(account, 'user-agent', `agent ${n}`));
      const outcomes = Promise.allSettled(puts);
      await vault.eraseAccount(account);
      for (const outcome of await outcomes) {
        if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'account-erased');
      }
      const records = await pool.query('SELECT 1 FROM vault_records WHERE account_id = $1', [account]);
      assert.equal(records.rowCount, 0);
      const { rows } = await pool.query('SELECT wrapped_key FROM vault_keys WHERE account_id = $1', [account]);
      assert.deepEqual(rows, [{ wrapped_key: null }]);
    }
  });

  test('adds nothing by a put that runs into an erasure', async (context) => {
    const { pool, vault } = await openVault(context);
    const account = newAccount();
    await vault.put(account, 'email', 'a@example.org');
    const erasing = await pool.connect();
    await erasing.query('BEGIN');
    await erasing.query('UPDATE vault_keys SET wrapped_key = NULL, erased_at = now() WHERE account_id = $1', [account]);
    const late = assert.rejects(vault.put(account, 'email', 'b@example.org'), { code: 'account-erased' });
    const waits = 'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = $1';
    while ((await pool.query(waits, ['Lock'])).rowCount === 0) await sleep(10);
    await erasing.query('DELETE FROM vault_records WHERE account_id = $1', [account]);
    await erasing.query('COMMIT');
    erasing.release();
    await late;
    assert.equal((await pool.query('SELECT 1 FROM vault_records')).rowCount, 0);
  });

  test('shares records and fingerprints between two nodes with the same master key', async (context) => {
    const { pool, masterKey, vault } = await openVault(context);
    const other = createPostgresVault({ pool, masterKey });
    const account = newAccount();
    const refs = await Promise.all([vault.put(account, 'email', 'a'), other.put(account, 'email', 'a')]);
    assert.equal(refs[0], refs[1]);
    assert.equal(await other.fingerprint('email', 'a'), await vault.fingerprint('email', 'a'));
  });
});
