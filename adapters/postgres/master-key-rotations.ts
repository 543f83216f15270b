/** Reads which rotations wrapped accounts' data keys again, on PostgreSQL (core/ports/master-key-rotations.ts). */
import type pg from 'pg';
import type { MasterKeyRotations } from '../../core/ports/master-key-rotations.ts';
import { vaultQuery } from './vault-query.ts';

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresMasterKeyRotations(pool: pg.Pool): MasterKeyRotations {
  return {
    rotationsOf: async (account) => {
      const text = 'SELECT rotations FROM vault_keys WHERE account_id = $1';
      const { rows } = await vaultQuery<{ readonly rotations: readonly string[] }>(pool, text, [account]);
      return rows[0]?.rotations ?? [];
    },
  };
}
