/**
 * The vault on PostgreSQL (core/ports/vault.ts).
 *
 * Invariants: a record is written only while the account's key row is locked against erasure, so that no record
 * outlives its key and none is sealed under a destroyed key. Erasing removes the wrapped key and the records. Copies in
 * backups and in the write-ahead log stay readable until those expire, and the documents say so.
 */
import type pg from 'pg';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { VaultDisclosure, VaultField, VaultRef } from '../../core/kernel/vault-ref.ts';
import { type Vault, VaultError, type VaultRecordName } from '../../core/ports/vault.ts';
import { CURRENT_KEY, keyringOf, type MasterKeyring } from './master-keyring.ts';
import {
  type AccountKeys,
  fingerprintOf,
  lookupOf,
  makeAccountKeys,
  openRecord,
  sealRecord,
  unwrapAccountKeys,
} from './vault-cipher.ts';
import { vaultQuery } from './vault-query.ts';

export interface PostgresVaultOptions {
  /** The pool of a migrated database; the caller closes it. */
  readonly pool: pg.Pool;
  /** Those of the service, or one of 32 bytes that never changes. */
  readonly masterKey: Uint8Array | MasterKeyring;
}

interface Context {
  readonly pool: pg.Pool;
  readonly keyring: MasterKeyring;
}

export function createPostgresVault({ pool, masterKey }: PostgresVaultOptions): Vault {
  const context: Context = { pool, keyring: keyringOf(pool, masterKey) };
  return {
    put: (account, field, value) => put(context, account, field, value),
    get: async (account, field, ref) => (await disclose(context, account, field, ref))?.value ?? null,
    disclose: (account, field, ref) => disclose(context, account, field, ref),
    discloseAll: (account, records) => discloseAll(context, account, records),
    holds: async (field) => {
      const text = 'SELECT FROM vault_records WHERE field = $1 LIMIT 1';
      return (await vaultQuery(pool, text, [field])).rowCount === 1;
    },
    delete: async (account, ref) => {
      await vaultQuery(pool, 'DELETE FROM vault_records WHERE account_id = $1 AND ref = $2', [account, ref]);
    },
    eraseAccount: (account) => eraseAccount(context, account),
    fingerprint: async (purpose, value) => fingerprintOf(await context.keyring.fingerprintKey(), purpose, value),
  };
}

async function put(context: Context, account: AccountId, field: VaultField, value: string): Promise<VaultRef> {
  for (;;) {
    const keys = await keysForWriting(context, account);
    if (keys === null) throw new VaultError('account-erased', `Account ${account} was erased`);
    const lookup = lookupOf(keys, field, value);
    const known = await findByLookup(context, account, lookup);
    if (known !== null) return known;
    const { ref, sealed } = sealRecord(keys, account, field, value);
    // FOR SHARE waits for a running erasure, and then finds no key.
    const inserted = await vaultQuery(
      context.pool,
      `INSERT INTO vault_records (account_id, ref, field, lookup, sealed)
       SELECT account_id, $2, $3, $4, $5 FROM vault_keys
       WHERE account_id = $1 AND wrapped_key IS NOT NULL FOR SHARE
       ON CONFLICT (account_id, lookup) DO NOTHING`,
      [account, ref, field, lookup, sealed],
    );
    if (inserted.rowCount === 1) return ref;
    // Another call put the same value at the same time, or erased the account: read again.
  }
}

/**
 * Returns the record's reference, or null. Also notes that the record is still in use, at most once an hour, since
 * records that no event names are removed after 24 hours.
 */
async function findByLookup({ pool }: Context, account: AccountId, lookup: Buffer): Promise<VaultRef | null> {
  const { rows } = await vaultQuery<{ ref: string; is_old: boolean }>(
    pool,
    `SELECT ref, put_at < now() - interval '1 hour' AS is_old FROM vault_records
     WHERE account_id = $1 AND lookup = $2`,
    [account, lookup],
  );
  const [found] = rows;
  if (found === undefined) return null;
  if (!found.is_old) return found.ref as VaultRef;
  const touched = await vaultQuery(pool, 'UPDATE vault_records SET put_at = now() WHERE account_id = $1 AND ref = $2', [
    account,
    found.ref,
  ]);
  return touched.rowCount === 1 ? (found.ref as VaultRef) : null;
}

async function disclose(
  context: Context,
  account: AccountId,
  field: VaultField,
  ref: VaultRef,
): Promise<VaultDisclosure | null> {
  return (await discloseAll(context, account, [{ field, ref }])).get(ref) ?? null;
}

async function discloseAll(
  context: Context,
  account: AccountId,
  records: readonly VaultRecordName[],
): Promise<ReadonlyMap<VaultRef, VaultDisclosure>> {
  if (records.length === 0) return new Map();
  const { rows } = await vaultQuery<WrappedKey & { ref: VaultRef; field: VaultField; sealed: Buffer }>(
    context.pool,
    `SELECT k.wrapped_key, k.master_key_id, r.ref, r.field, r.sealed FROM vault_records r JOIN vault_keys k USING (account_id)
     WHERE r.account_id = $1 AND r.ref = ANY($2::text[]) AND k.wrapped_key IS NOT NULL`,
    [account, records.map(({ ref }) => ref)],
  );
  const [first] = rows;
  if (first === undefined) return new Map();
  const keys = await unwrap(context, account, first);
  const fields = new Map(records.map(({ ref, field }) => [ref, field]));
  const found = rows.filter(({ ref, field }) => fields.get(ref) === field);
  return new Map(found.map(({ ref, field, sealed }) => [ref, opened(keys, account, { field, ref }, sealed)]));
}

function opened(
  keys: AccountKeys,
  account: AccountId,
  { field, ref }: VaultRecordName,
  sealed: Buffer,
): VaultDisclosure {
  try {
    const { nonce, value } = openRecord(keys, account, field, ref, sealed);
    return { nonce: nonce.toString('hex'), value };
  } catch (error) {
    const message = `The vault's record ${ref} of account ${account} was changed`;
    throw new VaultError('record-tampered', message, { cause: error });
  }
}

async function eraseAccount({ pool }: Context, account: AccountId): Promise<void> {
  // The key is removed first: this waits for a running put, which locks the key's row, so the second statement
  // sees the record that the put added.
  await vaultQuery(
    pool,
    `INSERT INTO vault_keys (account_id, wrapped_key, erased_at) VALUES ($1, NULL, now())
     ON CONFLICT (account_id) DO UPDATE SET wrapped_key = NULL, erased_at = coalesce(vault_keys.erased_at, now())`,
    [account],
  );
  await vaultQuery(pool, 'DELETE FROM vault_records WHERE account_id = $1', [account]);
}

/** Returns the account's keys, and creates them if it has none; null after the account was erased. */
async function keysForWriting(context: Context, account: AccountId): Promise<AccountKeys | null> {
  const wrapped = await readWrappedKey(context, account);
  if (wrapped !== undefined) return wrapped === null ? null : unwrap(context, account, wrapped);
  const { key, name } = await context.keyring.current();
  const made = makeAccountKeys(key, account);
  const inserted = await vaultQuery(
    context.pool,
    `INSERT INTO vault_keys (account_id, wrapped_key, master_key_id)
     SELECT $1, $2, $3 WHERE $3::text IS NOT DISTINCT FROM ${CURRENT_KEY} ON CONFLICT (account_id) DO NOTHING`,
    [account, made.wrapped, name],
  );
  if (inserted.rowCount === 1) return made.keys;
  // Another call was first, or the master key was replaced.
  await context.keyring.renew();
  return keysForWriting(context, account);
}

interface WrappedKey {
  readonly wrapped_key: Buffer;
  readonly master_key_id: string | null;
}

/** Resolves with null for an erased account, and with undefined for one that never had a key. */
async function readWrappedKey({ pool }: Context, account: AccountId): Promise<WrappedKey | null | undefined> {
  const { rows } = await vaultQuery<{ wrapped_key: Buffer | null; master_key_id: string | null }>(
    pool,
    'SELECT wrapped_key, master_key_id FROM vault_keys WHERE account_id = $1',
    [account],
  );
  const [found] = rows;
  if (found === undefined) return undefined;
  const { wrapped_key, master_key_id } = found;
  return wrapped_key === null ? null : { wrapped_key, master_key_id };
}

async function unwrap({ keyring }: Context, account: AccountId, wrapped: WrappedKey): Promise<AccountKeys> {
  const key = await keyring.named(wrapped.master_key_id);
  try {
    return unwrapAccountKeys(key, account, wrapped.wrapped_key);
  } catch (error) {
    const message = `The data key of account ${account} was changed, or STRATA_MASTER_KEY is not the one that wrapped it`;
    throw new VaultError('record-tampered', message, { cause: error });
  }
}
