/** The contracts of the delivery store and of policy marks on PostgreSQL. */
import { createPostgresDeliveryStore, createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { cleanUp } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { deliveryStoreContract } from './delivery-store.ts';

deliveryStoreContract('PostgreSQL', async (context) => {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return { store: createPostgresDeliveryStore(pool), marks: createPostgresPolicyMarks(pool) };
});
