/** The vault's contract on PostgreSQL. */
import { randomBytes } from 'node:crypto';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresVault } from '../../adapters/postgres/vault.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { vaultContract } from './vault.ts';

vaultContract('PostgreSQL', async () => {
  const database = await testDatabase();
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  return {
    vault: createPostgresVault({ pool, masterKey: randomBytes(32) }),
    close: async () => {
      await pool.end();
      await database.close();
    },
  };
});
