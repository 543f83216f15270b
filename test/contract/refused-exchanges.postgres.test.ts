/** The contract of refused exchanges on PostgreSQL. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { uuids } from '../../adapters/node/ids.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresRefusedExchanges } from '../../adapters/postgres/refused-exchanges.ts';
import { RefusedExchangesError } from '../../core/ports/refused-exchanges.ts';
import { cleanUp } from '../support/cleanup.ts';
import { newAccount } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { refusedExchangesContract } from './refused-exchanges.ts';

refusedExchangesContract('PostgreSQL', async (context) => {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return createPostgresRefusedExchanges(pool);
});

test('refused exchanges that cannot be reached are an outage', async (context) => {
  const pool = createPool({ connectionString: 'postgres://localhost:1/none', log: keepLog() });
  cleanUp(context, () => pool.end());
  const listed = createPostgresRefusedExchanges(pool).list(newAccount(), uuids.next());
  await assert.rejects(listed, RefusedExchangesError);
});
