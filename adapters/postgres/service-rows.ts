/**
 * Rows of keys that belong to the service, each sealed under the master key that it names.
 *
 * Invariants: a row is authenticated with its table and generation, by `context`. None is added under a master key
 * that a rotation has replaced.
 */
import type pg from 'pg';
import { CURRENT_KEY, type MasterKeyring } from './master-keyring.ts';
import { sealForService } from './vault-cipher.ts';

export interface ServiceRow {
  readonly generation: number;
  readonly sealed: Buffer;
  readonly master_key_id: string | null;
}

/** Returns false when the generation is there already. */
export async function addSealed(options: {
  readonly query: (text: string, values: readonly unknown[]) => Promise<pg.QueryResult>;
  readonly keyring: MasterKeyring;
  readonly table: 'signing_keys' | 'log_keys';
  readonly generation: number;
  readonly context: string;
  readonly content: string;
}): Promise<boolean> {
  const { query, keyring, table, generation, context, content } = options;
  const { key, name } = await keyring.current();
  const sealed = sealForService(key.service, context, content);
  const added = await query(
    `INSERT INTO ${table} (generation, sealed, master_key_id)
     SELECT $1, $2, $3 WHERE $3::text IS NOT DISTINCT FROM ${CURRENT_KEY} ON CONFLICT DO NOTHING`,
    [generation, sealed, name],
  );
  if (added.rowCount === 1) return true;
  await keyring.renew();
  return (await keyring.current()).name === name ? false : addSealed(options);
}
