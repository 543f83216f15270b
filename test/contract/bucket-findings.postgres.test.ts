/** The contract of findings about buckets, on PostgreSQL. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createPostgresBucketFindings } from '../../adapters/postgres/bucket-findings.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { BucketFindingsError } from '../../core/ports/bucket-findings.ts';
import { cleanUp } from '../support/cleanup.ts';
import { newAccount } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { bucketFindingsContract } from './bucket-findings.ts';

bucketFindingsContract('PostgreSQL', async (context) => {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return createPostgresBucketFindings(pool);
});

test('findings about buckets that cannot be reached are an outage', async (context) => {
  const pool = createPool({ connectionString: 'postgres://localhost:1/none', log: keepLog() });
  cleanUp(context, () => pool.end());
  await assert.rejects(createPostgresBucketFindings(pool).remove(newAccount(), null), BucketFindingsError);
});
