/** Strangers who begin device logins: what they can fill, push out, or make others decide. */
import assert from 'node:assert/strict';
import type pg from 'pg';
import { beforeEach, describe, test } from 'vitest';
import { createPostgresDeviceLoginRequests } from '../../adapters/postgres/device-login-requests.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import type { DeviceSessionId } from '../../core/kernel/ids.ts';
import { DEVICE_SESSIONS_PENDING_MAX } from '../../core/use-cases/tokens/device-login.ts';
import { newRequest } from '../contract/device-login-requests.ts';
import { cleanUp, suiteEnding } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { databaseAlone, testDatabase } from '../support/postgres.ts';
import { until } from '../support/read-models.ts';

/** Before every request of the contract, so that nothing is long over. */
const BOUNDS = { pendingMax: DEVICE_SESSIONS_PENDING_MAX, keptSince: newRequest().requestedAt };

/** Adds pending rows by one statement: `network` is an expression of the row's number, from 1 to `count`. */
const FILL = (network: string, count: number): string => `
  INSERT INTO device_login_requests
    (id, secret_hash, network, requested_at, expires_at, user_code, hostname, address, step, due_at)
  SELECT gen_random_uuid(), 'a', ${network}, '2026-11-21T10:00:00.000Z', at, 'BCDF-0000', 'x', '', 'forget-device', at
  FROM (SELECT n, '2026-11-21T10:10:' || lpad((n / 1000)::text, 2, '0') || '.' || lpad((n % 1000)::text, 3, '0') || 'Z'
    AS at FROM generate_series(1, ${count}) AS n) AS filled`;

const PENDING = `SELECT count(*)::int AS count FROM device_login_requests WHERE step = 'forget-device' AND NOT is_held`;

/** Rows that PostgreSQL read of these tables, by any way. */
const LOOKED_AT = `
  SELECT (sum(seq_tup_read) + sum(coalesce(idx_tup_fetch, 0)) + (
    SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname LIKE 'device_login%'))::int AS rows
  FROM pg_stat_user_tables WHERE relname LIKE 'device_login%'`;

const WAITING = `
  SELECT FROM pg_stat_activity
  WHERE wait_event_type = 'Lock' AND query LIKE '%add_device_login_request%' AND datname = current_database()`;

describe('Strangers who begin device logins', () => {
  const ending = suiteEnding();
  let pool: pg.Pool;
  let connectionString: string;
  let nodes: readonly ReturnType<typeof createPostgresDeviceLoginRequests>[];

  beforeEach(async () => {
    const database = await testDatabase();
    ({ connectionString } = database);
    cleanUp(ending, () => database.close());
    const newPool = (): pg.Pool => {
      const made = createPool({ connectionString, log: keepLog() });
      cleanUp(ending, () => made.end());
      return made;
    };
    pool = newPool();
    nodes = [pool, newPool()].map((each) => createPostgresDeviceLoginRequests(each));
  });

  const on = (index: number) => {
    const node = nodes[index % nodes.length];
    if (node === undefined) throw new TypeError('There are two nodes');
    return node;
  };
  const pending = async (): Promise<number> => (await pool.query<{ count: number }>(PENDING)).rows[0]?.count ?? 0;
  const isThere = async (id: DeviceSessionId): Promise<boolean> => (await on(0).find(id)) !== null;

  test('of one network push out only their own', async () => {
    // The attack: one network begins as many logins as fit, so that the logins of everybody else are pushed out.
    const honest = newRequest({ network: 'honest' });
    await on(0).add(honest, BOUNDS);
    await pool.query(FILL(`'attacker'`, DEVICE_SESSIONS_PENDING_MAX - 1));
    assert.equal(await pending(), DEVICE_SESSIONS_PENDING_MAX, 'all fit');
    const more = Array.from({ length: 30 }, (_, n) => newRequest({ network: 'attacker', after: 60_000 + n }));
    await Promise.all(more.map((request, n) => on(n).add(request, BOUNDS)));
    assert.equal(await pending(), DEVICE_SESSIONS_PENDING_MAX, 'exact, though two nodes added at the same time');
    assert.ok(await isThere(honest.id));
    const { rows } = await pool.query(
      `SELECT min(due_at) AS oldest FROM device_login_requests WHERE network = 'attacker'`,
    );
    assert.deepEqual(rows, [{ oldest: '2026-11-21T10:10:00.031Z' }], 'its oldest went');
  });

  test('of many networks push out the oldest, one for each', async () => {
    // The attack: each login comes from a network of its own, so that none holds more than the others.
    const honest = newRequest({ network: 'honest', after: 30_000 });
    await on(0).add(honest, BOUNDS);
    await pool.query(FILL(`'attacker ' || n`, DEVICE_SESSIONS_PENDING_MAX - 1));
    const more = Array.from({ length: 30 }, (_, n) => newRequest({ network: `late ${n}`, after: 60_000 + n }));
    await Promise.all(more.map((request, n) => on(n).add(request, BOUNDS)));
    assert.equal(await pending(), DEVICE_SESSIONS_PENDING_MAX);
    assert.ok(await isThere(honest.id));
    const { rows } = await pool.query('SELECT min(due_at) AS oldest FROM device_login_requests');
    assert.deepEqual(rows, [{ oldest: '2026-11-21T10:10:00.031Z' }]);
  });

  test('push out no login that somebody decides about, however the two race', async () => {
    // The attack: a flood removes the row of a login between the decision of its user and the poll of its device.
    const [decided, late] = [newRequest(), newRequest({ after: 1 })];
    await on(0).add(decided, BOUNDS);
    const holding = await pool.connect();
    let adding: Promise<void>;
    try {
      await holding.query('BEGIN');
      await holding.query('UPDATE device_login_requests SET is_held = true WHERE id = $1', [decided.id]);
      adding = on(1).add(late, { ...BOUNDS, pendingMax: 1 });
      // The transaction that holds the row would see the same activity at every look.
      await until(async () => (await pool.query(WAITING)).rowCount === 1);
    } finally {
      await holding.query('COMMIT');
      holding.release();
    }
    await adding;
    assert.deepEqual([await isThere(decided.id), await isThere(late.id)], [true, true]);
    const later = newRequest({ after: 2 });
    await on(1).add(later, { ...BOUNDS, pendingMax: 1 });
    assert.deepEqual([await isThere(decided.id), await isThere(late.id)], [true, false]);
    assert.deepEqual(
      [await on(0).hold(late.id), await on(0).hold(later.id)],
      [false, true],
      'who came too late holds none',
    );
  });

  test('make the database look at few rows for one addition, however many wait', async (context) => {
    // The attack: each request of 1 KB makes the database look through all pending logins, which took it 8 ms.
    const alone = await databaseAlone();
    cleanUp(context, () => alone.close());
    const { connectionString: ofItsOwn } = alone;
    const single = createPool({ connectionString: ofItsOwn, log: keepLog(), connectionsMax: 1 });
    cleanUp(context, () => single.end());
    const store = createPostgresDeviceLoginRequests(single);
    // A plan that was made for an empty table must do for a full one.
    await store.add(newRequest({ network: 'first' }), BOUNDS);
    // While it collects statistics of the filled table, no index forgets the rows that additions have removed.
    await single.query('ALTER TABLE device_login_requests SET (autovacuum_enabled = false)');
    await single.query(FILL(`'attacker ' || n % 4000`, DEVICE_SESSIONS_PENDING_MAX));
    await store.add(newRequest({ network: 'counts what was filled in', after: 50_000 }), BOUNDS);
    const looked = async (): Promise<number> => {
      await single.query('SELECT pg_stat_force_next_flush()');
      return (await single.query<{ rows: number }>(LOOKED_AT)).rows[0]?.rows ?? 0;
    };
    const additions = Array.from({ length: 50 }, (_, n) => newRequest({ network: `late ${n}`, after: 60_000 + n }));
    const each: number[] = [];
    let spentMs = 0;
    let before = await looked();
    for (const request of additions) {
      const begunAt = performance.now();
      await store.add(request, BOUNDS);
      spentMs += performance.now() - begunAt;
      const after = await looked();
      each.push(after - before);
      before = after;
    }
    // The median: PostgreSQL reads the whole table now and then for itself, such as for new statistics.
    const rows = each.toSorted((a, b) => a - b)[Math.floor(each.length / 2)] ?? 0;
    const eachMs = spentMs / additions.length;
    await context.annotate(`${eachMs.toFixed(1)} ms and ${rows} rows for each`);
    assert.ok(rows > 0 && rows < 100, `${rows} rows for each`);
  });
});
