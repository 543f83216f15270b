/**
 * Replaces the master key in the database: wraps every data key and every key of the service again.
 *
 * Invariants: it may die at any point and be run again with the same keys. Until it is finished each row names the key
 * that it needs, and both are in use. From the moment that the new key stands in `master_keys` no row is added under
 * another one: the lock of the tables waits for the statements under way, and later ones compare (CURRENT_KEY).
 */
import type pg from 'pg';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { Failpoint } from '../../core/ports/failpoints.ts';
import { logKeysContext } from './log-keys.ts';
import { MASTER_KEY_ROWS, type MasterKeyRow } from './master-keyring.ts';
import { signingKeysContext } from './signing-keys.ts';
import { inTransaction } from './transaction.ts';
import {
  deriveMasterKey,
  type MasterKey,
  openFingerprintKey,
  openForService,
  sealFingerprintKey,
  sealForService,
  wrapAgain,
} from './vault-cipher.ts';

const ACCOUNTS_AT_ONCE = 500;
const ROTATION_LOCK = `SELECT pg_try_advisory_lock(hashtextextended('strata.master-key', 0)) AS taken`;
const SERVICE_TABLES = [
  { table: 'signing_keys', contextOf: signingKeysContext },
  { table: 'log_keys', contextOf: logKeysContext },
] as const;

/**
 * - `same-key`: the new key is the old one;
 * - `another-rotation`: one to another new key is unfinished, or one runs at this moment;
 * - `not-current`: the database was last given another key than the old one.
 */
export type RotationFault = 'same-key' | 'another-rotation' | 'not-current';

export interface RotateMasterKeyOptions {
  /** Connected as the owner of the database, and used by nobody else. */
  readonly client: pg.ClientBase;
  /** 32 bytes each. */
  readonly oldKey: Uint8Array;
  readonly newKey: Uint8Array;
  readonly failpoint: Failpoint;
}

/** Returns how many accounts got the new key in this run. */
export async function rotateMasterKey(
  options: RotateMasterKeyOptions,
): Promise<{ readonly accounts: number } | { readonly fault: RotationFault }> {
  const { client, failpoint } = options;
  const [oldKey, newKey] = [deriveMasterKey(options.oldKey), deriveMasterKey(options.newKey)];
  if (oldKey.id === newKey.id) return { fault: 'same-key' };
  const { rows } = await client.query<{ taken: boolean }>(ROTATION_LOCK);
  if (rows[0]?.taken !== true) return { fault: 'another-rotation' };
  const announced = await inTransaction(client, () => announce(client, oldKey, newKey));
  if ('fault' in announced) return announced;
  await failpoint('master-key-announced');
  // A row without a name is of before the first rotation, whose key is then the old one of this rotation.
  const rotation: Rotation = { client, oldKey, newKey };
  const accounts = await wrapAccounts(rotation, failpoint);
  await failpoint('master-key-accounts');
  await inTransaction(client, async () => {
    for (const service of SERVICE_TABLES) await sealAgain(rotation, service);
    await client.query('DELETE FROM master_keys WHERE key_id <> $1', [newKey.id]);
  });
  await failpoint('master-key-finished');
  return { accounts };
}

interface Rotation {
  readonly client: pg.ClientBase;
  readonly oldKey: MasterKey;
  readonly newKey: MasterKey;
}

/** Makes the new key the one of new rows, unless it is already. */
async function announce(
  client: pg.ClientBase,
  oldKey: MasterKey,
  newKey: MasterKey,
): Promise<{ readonly fault: RotationFault } | { readonly announced: true }> {
  await client.query('LOCK TABLE vault_keys, signing_keys, log_keys, master_keys IN SHARE ROW EXCLUSIVE MODE');
  const { rows } = await client.query<MasterKeyRow>(MASTER_KEY_ROWS);
  const last = rows.at(-1);
  if (last?.key_id === newKey.id) return { announced: true };
  if (rows.length > 1) return { fault: 'another-rotation' };
  if (last !== undefined && last.key_id !== oldKey.id) return { fault: 'not-current' };
  const fingerprint = last === undefined ? oldKey.fingerprint : openFingerprintKey(oldKey, last.sealed_fingerprint_key);
  const add = (generation: number, key: MasterKey) =>
    client.query('INSERT INTO master_keys (generation, key_id, sealed_fingerprint_key) VALUES ($1, $2, $3)', [
      generation,
      key.id,
      sealFingerprintKey(key, fingerprint),
    ]);
  const generation = last?.generation ?? 1;
  if (last === undefined) await add(generation, oldKey);
  await add(generation + 1, newKey);
  return { announced: true };
}

interface AccountRow {
  readonly account_id: AccountId;
  readonly wrapped_key: Buffer;
}

/** In batches, which hold up an erasure or a write of one of their accounts for milliseconds. */
async function wrapAccounts({ client, oldKey, newKey }: Rotation, failpoint: Failpoint): Promise<number> {
  let accounts = 0;
  let after = '00000000-0000-0000-0000-000000000000';
  for (;;) {
    const rows = await inTransaction(client, async () => {
      const batch = await client.query<AccountRow>(
        `SELECT account_id, wrapped_key FROM vault_keys
         WHERE account_id > $1 AND wrapped_key IS NOT NULL AND master_key_id IS DISTINCT FROM $2
         ORDER BY account_id LIMIT $3 FOR UPDATE`,
        [after, newKey.id, ACCOUNTS_AT_ONCE],
      );
      const wrapped = batch.rows.map((row) => wrapAgain(oldKey, newKey, row.account_id, row.wrapped_key));
      await client.query(
        `UPDATE vault_keys SET wrapped_key = rewrapped.wrapped_key, master_key_id = $3,
           rotations = array_append(rotations, $3)
         FROM unnest($1::uuid[], $2::bytea[]) AS rewrapped (account_id, wrapped_key)
         WHERE vault_keys.account_id = rewrapped.account_id`,
        [batch.rows.map((row) => row.account_id), wrapped, newKey.id],
      );
      return batch.rows;
    });
    const last = rows.at(-1);
    if (last === undefined) return accounts;
    accounts += rows.length;
    after = last.account_id;
    await failpoint('master-key-batch');
  }
}

async function sealAgain(
  { client, oldKey, newKey }: Rotation,
  { table, contextOf }: (typeof SERVICE_TABLES)[number],
): Promise<void> {
  const { rows } = await client.query<{ generation: number; sealed: Buffer }>(
    `SELECT generation, sealed FROM ${table} WHERE master_key_id IS DISTINCT FROM $1 FOR UPDATE`,
    [newKey.id],
  );
  for (const { generation, sealed } of rows) {
    const context = contextOf(generation);
    const text = openForService(oldKey.service, context, sealed);
    await client.query(`UPDATE ${table} SET sealed = $2, master_key_id = $3 WHERE generation = $1`, [
      generation,
      sealForService(newKey.service, context, text),
      newKey.id,
    ]);
  }
}
