/** The contract of sums of rates on PostgreSQL, and what is stored. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresRateSums } from '../../adapters/postgres/rate-sums.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { rateSumsContract } from './rate-sums.ts';

rateSumsContract('PostgreSQL', async () => {
  const database = await testDatabase();
  const pool = createPool({ ...database, log: keepLog() });
  return {
    sums: createPostgresRateSums(pool),
    close: async () => {
      await pool.end();
      await database.close();
    },
  };
});

test('Sums of rates go when their span is over, from a table that writes no log of its own', async () => {
  const database = await testDatabase();
  const pool = createPool({ ...database, log: keepLog() });
  try {
    const sums = createPostgresRateSums(pool);
    const nowSeconds = Math.ceil(Date.now() / 1_000);
    const of = (span: number, endsAtSeconds: number) => [
      { name: 'points', span, endsAtSeconds, sums: [{ key: 'ada', amount: 1 }] },
    ];
    await sums.exchange('one', of(1, nowSeconds - 600));
    await sums.exchange('one', of(2, nowSeconds + 60));
    assert.deepEqual((await pool.query('SELECT span::int FROM rate_sums')).rows, [{ span: 2 }]);
    const { rows } = await pool.query(`SELECT relpersistence AS kind FROM pg_class WHERE relname = 'rate_sums'`);
    assert.deepEqual(rows, [{ kind: 'u' }]);
  } finally {
    await pool.end();
    await database.close();
  }
});
