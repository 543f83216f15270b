/** The contract of the requests of device logins on PostgreSQL. */
import { createPostgresDeviceLoginRequests } from '../../adapters/postgres/device-login-requests.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { cleanUp } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { deviceLoginRequestsContract } from './device-login-requests.ts';

deviceLoginRequestsContract('PostgreSQL', async (context) => {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return createPostgresDeviceLoginRequests(pool);
});
