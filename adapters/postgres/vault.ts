/**
 * The vault on PostgreSQL (core/ports/vault.ts).
 *
 * Must stay true: a record is written only while its account's key row is held against erasure, so that no record
 * outlives its key and none is sealed under one that was destroyed. Erasing removes the wrapped key and the records;
 * what backups and the write-ahead log still hold is unreadable only once they expire, and the documents say so.
 */
import type pg from 'pg';
import type { AccountId } from '../../core/kernel/ids.ts';
import {
  type Vault,
  type VaultDisclosure,
  VaultError,
  type VaultField,
  type VaultRef,
} from '../../core/ports/vault.ts';
import {
  type AccountKeys,
  deriveMasterKeys,
  fingerprintOf,
  lookupOf,
  makeAccountKeys,
  openRecord,
  sealRecord,
  unwrapAccountKeys,
} from './vault-cipher.ts';
import { vaultQuery } from './vault-query.ts';

export interface PostgresVaultOptions {
  /** A pool of a migrated database; it stays its owner's to close. */
  readonly pool: pg.Pool;
  /** 32 bytes. */
  readonly masterKey: Uint8Array;
}

export function createPostgresVault({ pool, masterKey }: PostgresVaultOptions): Vault {
  const master = deriveMasterKeys(masterKey);

  /** The account's keys, made where it has none; null after it was erased. */
  async function keysForWriting(account: AccountId): Promise<AccountKeys | null> {
    const wrapped = await readWrappedKey(account);
    if (wrapped !== undefined) return wrapped === null ? null : unwrap(account, wrapped);
    const made = makeAccountKeys(master, account);
    const inserted = await query(
      'INSERT INTO vault_keys (account_id, wrapped_key) VALUES ($1, $2) ON CONFLICT (account_id) DO NOTHING',
      [account, made.wrapped],
    );
    return inserted.rowCount === 1 ? made.keys : keysForWriting(account);
  }

  async function readWrappedKey(account: AccountId): Promise<Buffer | null | undefined> {
    const { rows } = await query<{ wrapped_key: Buffer | null }>(
      'SELECT wrapped_key FROM vault_keys WHERE account_id = $1',
      [account],
    );
    return rows[0]?.wrapped_key;
  }

  function unwrap(account: AccountId, wrapped: Buffer): AccountKeys {
    try {
      return unwrapAccountKeys(master, account, wrapped);
    } catch (error) {
      const message = `The data key of account ${account} was changed, or STRATA_MASTER_KEY is not the one it was made with`;
      throw new VaultError('record-tampered', message, { cause: error });
    }
  }

  async function put(account: AccountId, field: VaultField, value: string): Promise<VaultRef> {
    for (;;) {
      const keys = await keysForWriting(account);
      if (keys === null) throw new VaultError('account-erased', `Account ${account} was erased`);
      const lookup = lookupOf(keys, field, value);
      const known = await findByLookup(account, lookup);
      if (known !== null) return known;
      const { ref, sealed } = sealRecord(keys, account, field, value);
      // FOR SHARE waits for an erasure under way, and then finds no key.
      const inserted = await query(
        `INSERT INTO vault_records (account_id, ref, field, lookup, sealed)
         SELECT account_id, $2, $3, $4, $5 FROM vault_keys
         WHERE account_id = $1 AND wrapped_key IS NOT NULL FOR SHARE
         ON CONFLICT (account_id, lookup) DO NOTHING`,
        [account, ref, field, lookup, sealed],
      );
      if (inserted.rowCount === 1) return ref;
      // Someone put the same value at the same moment, or erased the account: look again.
    }
  }

  /** Also says that the record is wanted still, once an hour: unreferenced ones are removed after 24. */
  async function findByLookup(account: AccountId, lookup: Buffer): Promise<VaultRef | null> {
    const { rows } = await query<{ ref: string; is_old: boolean }>(
      `SELECT ref, put_at < now() - interval '1 hour' AS is_old FROM vault_records
       WHERE account_id = $1 AND lookup = $2`,
      [account, lookup],
    );
    const [found] = rows;
    if (found === undefined) return null;
    if (!found.is_old) return found.ref as VaultRef;
    const touched = await query('UPDATE vault_records SET put_at = now() WHERE account_id = $1 AND ref = $2', [
      account,
      found.ref,
    ]);
    return touched.rowCount === 1 ? (found.ref as VaultRef) : null;
  }

  async function disclose(account: AccountId, field: VaultField, ref: VaultRef): Promise<VaultDisclosure | null> {
    const { rows } = await query<{ wrapped_key: Buffer; sealed: Buffer }>(
      `SELECT k.wrapped_key, r.sealed FROM vault_records r JOIN vault_keys k USING (account_id)
       WHERE r.account_id = $1 AND r.ref = $2 AND r.field = $3 AND k.wrapped_key IS NOT NULL`,
      [account, ref, field],
    );
    const [row] = rows;
    if (row === undefined) return null;
    const keys = unwrap(account, row.wrapped_key);
    try {
      const { nonce, value } = openRecord(keys, account, field, ref, row.sealed);
      return { nonce: nonce.toString('hex'), value };
    } catch (error) {
      const message = `The vault's record ${ref} of account ${account} was changed`;
      throw new VaultError('record-tampered', message, { cause: error });
    }
  }

  async function eraseAccount(account: AccountId): Promise<void> {
    // The key first: a put under way holds its row, so the second statement sees what that put added.
    await query(
      `INSERT INTO vault_keys (account_id, wrapped_key, erased_at) VALUES ($1, NULL, now())
       ON CONFLICT (account_id) DO UPDATE SET wrapped_key = NULL, erased_at = coalesce(vault_keys.erased_at, now())`,
      [account],
    );
    await query('DELETE FROM vault_records WHERE account_id = $1', [account]);
  }

  const query = <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[]) =>
    vaultQuery<Row>(pool, text, values);

  return {
    put,
    get: async (account, field, ref) => (await disclose(account, field, ref))?.value ?? null,
    disclose,
    holds: async (field) => {
      const text = 'SELECT FROM vault_records WHERE field = $1 LIMIT 1';
      return (await query(text, [field])).rowCount === 1;
    },
    delete: async (account, ref) => {
      await query('DELETE FROM vault_records WHERE account_id = $1 AND ref = $2', [account, ref]);
    },
    eraseAccount,
    fingerprint: async (purpose, value) => fingerprintOf(master, purpose, value),
  };
}
