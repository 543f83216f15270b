/** The snapshots' contract on PostgreSQL. */
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresSnapshots } from '../../adapters/postgres/snapshots.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { snapshotsContract } from './snapshots.ts';

snapshotsContract('PostgreSQL', async () => {
  const database = await testDatabase();
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  return {
    snapshots: createPostgresSnapshots(pool),
    close: async () => {
      await pool.end();
      await database.close();
    },
  };
});
