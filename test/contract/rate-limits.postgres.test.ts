/** The contract of rate limits on PostgreSQL, and what is stored. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { digest } from '../../adapters/node/digest.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresRateLimits, removeExpiredCounts } from '../../adapters/postgres/rate-limits.ts';
import type { RateLimit } from '../../core/ports/rate-limits.ts';
import { keepLog } from '../support/log.ts';
import { type TestDatabase, testDatabase } from '../support/postgres.ts';
import { rateLimitsContract } from './rate-limits.ts';

type Pool = ReturnType<typeof createPool>;

const RUNNING = new AbortController().signal;

const digestOf = async (key: string): Promise<string> => digest.hmacSha256('a secret', key);

/** Moves every span back, as if the time had passed: nodes measure it by their own clocks. */
async function elapse(pool: Pool, ms: number): Promise<void> {
  await pool.query('UPDATE rate_limits SET expire = expire - $1', [ms]);
}

rateLimitsContract('PostgreSQL', async () => {
  const database = await testDatabase();
  const pools = [0, 1].map(() => createPool({ ...database, log: keepLog() }));
  const [one, other] = pools;
  assert.ok(one !== undefined && other !== undefined);
  return {
    nodes: [createPostgresRateLimits({ pool: one, digestOf }), createPostgresRateLimits({ pool: other, digestOf })],
    elapse: (ms) => elapse(one, ms),
    close: async () => {
      for (const pool of pools) await pool.end();
      await database.close();
    },
  };
});

describe('The stored counts', () => {
  const LIMIT: RateLimit = { name: 'a-limit', timesMax: 2, spanMs: 60_000 };
  let database: TestDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await testDatabase();
    pool = createPool({ ...database, log: keepLog() });
  });
  afterAll(async () => {
    await pool.end();
    await database.close();
  });

  test('hold no address and no name in clear, and a key of any length', async () => {
    const limits = createPostgresRateLimits({ pool, digestOf });
    for (const key of ['203.0.113.7', 'ada@example.org', 'x'.repeat(100_000)]) {
      assert.equal(await limits.take([{ limit: LIMIT, key }]), null);
    }
    const { rows } = await pool.query<{ key: string }>('SELECT key FROM rate_limits');
    assert.equal(rows.length, 3);
    for (const { key } of rows) assert.match(key, /^a-limit:[0-9a-f]{64}$/);
  });

  test('are removed after their span, and stay until then', async () => {
    const limits = createPostgresRateLimits({ pool, digestOf });
    await pool.query('DELETE FROM rate_limits');
    await limits.take([{ limit: LIMIT, key: 'old' }]);
    await elapse(pool, 60_001);
    await pool.query(
      `INSERT INTO rate_limits SELECT 'a-limit:' || n, 1, 0 FROM generate_series(1, 2500) AS numbers (n)`,
    );
    await limits.take([{ limit: LIMIT, key: 'new' }]);
    await removeExpiredCounts(pool, RUNNING);
    assert.equal((await pool.query('SELECT FROM rate_limits')).rowCount, 1);
    await limits.take([{ limit: LIMIT, key: 'new' }]);
    assert.ok((await limits.take([{ limit: LIMIT, key: 'new' }])) !== null);
  });

  test('admit nothing while they cannot be reached, on a node that counted before too', async () => {
    const own = createPool({ ...database, log: keepLog() });
    const limits = createPostgresRateLimits({ pool: own, digestOf });
    const count = { limit: LIMIT, key: 'cut off' };
    assert.equal(await limits.take([count]), null);
    await own.end();
    const gone = createPool({ connectionString: 'postgresql://strata@127.0.0.1:1/none', log: keepLog() });
    const cutOff = createPostgresRateLimits({ pool: gone, digestOf });
    await assert.rejects(cutOff.take([count]), { name: 'RateLimitsError', code: 'rate-limits-unavailable' });
    await assert.rejects(cutOff.giveBack([count]), { code: 'rate-limits-unavailable' });
    await assert.rejects(removeExpiredCounts(gone, RUNNING), { code: 'rate-limits-unavailable' });
    await gone.end();
  });
});
