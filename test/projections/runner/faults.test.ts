/** What a failure of the database means for a model that is read or written. */
import assert from 'node:assert/strict';
import pg from 'pg';
import { test } from 'vitest';
import { faultKind } from '../../../projections/runner/faults.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { testDatabase } from '../../support/postgres.ts';

test('That all connections are in use is an outage, which passes, and no fault of a stream', async (context) => {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = new pg.Pool({ connectionString: database.connectionString, max: 1, connectionTimeoutMillis: 100 });
  cleanUp(context, () => pool.end());
  const client = await pool.connect();
  try {
    const error: unknown = await pool.query('SELECT 1').catch((thrown: unknown) => thrown);
    assert.ok(error instanceof Error, 'it got a connection');
    assert.equal(faultKind(error), 'outage');
  } finally {
    client.release();
  }
});
