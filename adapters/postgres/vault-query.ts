/** Runs a statement on the vault's tables. An outage of PostgreSQL becomes `VaultError` `vault-unavailable`. */
import type pg from 'pg';
import { VaultError } from '../../core/ports/vault.ts';
import { failureOf } from './failures.ts';

export async function vaultQuery<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  text: string,
  values: readonly unknown[],
): Promise<pg.QueryResult<Row>> {
  try {
    return await pool.query<Row>(text, [...values]);
  } catch (error) {
    if (failureOf(error) === 'other') throw error;
    throw new VaultError('vault-unavailable', 'PostgreSQL cannot be reached', { cause: error });
  }
}
