/** The contract of the pushes that webhooks were notified of, on PostgreSQL. */
import { createPostgresNotifiedPushes } from '../../adapters/postgres/notified-pushes.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { cleanUp } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { notifiedPushesContract } from './notified-pushes.ts';

notifiedPushesContract('on PostgreSQL', async (context) => {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return createPostgresNotifiedPushes(pool);
});
