/** The runner: checkpoints, takeover, poison events, rebuilds and read-your-writes, on a real PostgreSQL. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { LogPosition, RecordedEvent } from '../../core/kernel/envelope.ts';
import { streamName } from '../../core/kernel/envelope.ts';
import { ReadModelError } from '../../core/ports/read-models.ts';
import type { Projection } from '../../projections/runner/projection.ts';
import { newDatabase } from '../support/read-model-database.ts';
import { Appender, createMemoryEventStore, newRunner, newUuid, startRunner } from '../support/read-models.ts';

const WAIT_MS = 10_000;

/** Counts events by stream: applying one twice, or never, shows in the counts. */
function counting(faults: Partial<Projection> & { readonly poison?: (event: RecordedEvent) => void } = {}): Projection {
  const { poison, ...overrides } = faults;
  return {
    name: 'counting',
    version: 1,
    categories: ['account'],
    onPoison: 'park',
    tables: [
      {
        name: 'counts',
        key: ['stream'],
        compare: 'exact',
        create: (table) => [`CREATE TABLE ${table} (stream text PRIMARY KEY, events integer NOT NULL)`],
      },
    ],
    open: (table) => ({
      prepare: async (events) => {
        for (const event of events) poison?.(event);
        const counts = new Map<string, { stream: string; events: number }>();
        for (const { stream } of events) {
          counts.set(stream, { stream, events: (counts.get(stream)?.events ?? 0) + 1 });
        }
        return {
          lists: [
            {
              items: [...counts.values()],
              text: `INSERT INTO ${table('counts')} AS c
                SELECT * FROM json_to_recordset($1) AS r(stream text, events integer)
                ON CONFLICT (stream) DO UPDATE SET events = c.events + excluded.events`,
            },
          ],
          // Some batches need a transaction of several statements, some do not.
          ...(events.length % 2 === 0 ? {} : { before: async () => undefined }),
        };
      },
    }),
    ...overrides,
  };
}

async function liveTable(pool: pg.Pool, table: string, model = 'counting'): Promise<string> {
  const { rows } = await pool.query<{ version: number; live_generation: number }>(
    'SELECT version, live_generation FROM read_models.projections WHERE name = $1 ORDER BY version DESC LIMIT 1',
    [model],
  );
  return `read_models.${table}_v${rows[0]?.version}_${rows[0]?.live_generation}`;
}

async function counts(pool: pg.Pool): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ stream: string; events: number }>(
    `SELECT * FROM ${await liveTable(pool, 'counts')}`,
  );
  return Object.fromEntries(rows.map(({ stream, events }) => [stream, events]));
}

/** Appends this many events to each of some streams, in turn. */
async function appendSome(to: Appender, streams: number, each: number): Promise<Record<string, number>> {
  const names = Array.from({ length: streams }, () => streamName('account', newUuid()));
  for (let event = 0; event < each; event += 1) {
    for (const name of names) await to.append(name, newUuid(), 'PlanChanged', { plan: 'PRO' });
  }
  return Object.fromEntries(names.map((name) => [name, each]));
}

async function setUp(
  context: TestContext,
): Promise<{ pool: pg.Pool; store: ReturnType<typeof createMemoryEventStore>; append: Appender }> {
  const pool = await newDatabase(context);
  const store = createMemoryEventStore();
  return { pool, store, append: new Appender(store) };
}

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('It did not come to pass');
    await sleep(5);
  }
}

/** Ends, as a crash would, the connection that holds the model's lock. */
async function killLeader(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ killed: boolean }>(
    `SELECT pg_terminate_backend(pid) AS killed FROM pg_locks
      WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rows.length;
}

/** The same pool, but everybody gets every advisory lock. */
function withoutLocks(pool: pg.Pool): pg.Pool {
  return replacing(pool, (text) => (text.includes('pg_try_advisory_lock') ? { rows: [{ taken: true }] } : null));
}

/** The same pool, with another answer to some statements of its clients; null asks the database. */
function replacing(pool: pg.Pool, answer: (text: string, client: pg.PoolClient) => unknown): pg.Pool {
  const connect = async (): Promise<pg.PoolClient> => {
    const client = await pool.connect();
    return new Proxy(client, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key, target);
        if (typeof member !== 'function') return member;
        if (key !== 'query') return member.bind(target);
        return async (statement: string | { readonly text: string }) => {
          const text = typeof statement === 'string' ? statement : statement.text;
          return (await answer(text, target)) ?? target.query(statement);
        };
      },
    });
  };
  return new Proxy(pool, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key, target);
      if (key === 'connect') return connect;
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

describe('following the log', () => {
  test('applies each event once, and advances over what it filters out', async (context) => {
    const { pool, store, append } = await setUp(context);
    const expected = await appendSome(append, 3, 4);
    const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
    await append.token(newUuid(), 'not for this model');
    await runner.waitFor(append.last, WAIT_MS);
    const { rows } = await pool.query('SELECT position FROM read_models.checkpoints');
    assert.deepEqual(rows, [{ position: String(append.last) }]);
  });

  test('wakes a waiting reader by its own commit, and gives up in time when nothing comes', async (context) => {
    const { pool, store, append } = await setUp(context);
    const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await runner.waitFor(append.last, WAIT_MS);
    const next = (append.last + 1n) as LogPosition;
    const waiting = runner.waitFor(next, WAIT_MS);
    await appendSome(append, 1, 1);
    await waiting;
    assert.equal(Object.keys(await counts(pool)).length, 1);
    const beyond = (next + 1n) as LogPosition;
    await assert.rejects(runner.waitFor(beyond, 10), (error) => {
      return error instanceof ReadModelError && error.code === 'read-model-behind';
    });
  });

  test('a process that does not lead learns of positions from the database', async (context) => {
    const { pool, store, append } = await setUp(context);
    const models = [counting()];
    const leader = await startRunner(context, { events: store, database: pool, models });
    await leader.runner.waitFor(append.last, WAIT_MS);
    const reader = newRunner(context, { events: store, database: pool, models });
    const expected = await appendSome(append, 2, 2);
    await reader.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
  });

  test('two runners race for each batch and every event is applied exactly once', async (context) => {
    const { pool, store, append } = await setUp(context);
    // Without the lock both lead: only the checkpoint keeps them apart.
    const unlocked = withoutLocks(pool);
    const models = [counting()];
    const one = await startRunner(context, { events: store, database: unlocked, models });
    await one.runner.waitFor(append.last, WAIT_MS);
    const two = await startRunner(context, { events: store, database: unlocked, models });
    const lostRaces = (): number =>
      [...one.log.lines, ...two.log.lines].filter(({ message }) => message.includes('changed under')).length;
    let expected = {};
    await until(async () => {
      expected = { ...expected, ...(await appendSome(append, 5, 5)) };
      return lostRaces() >= 3;
    });
    await one.runner.waitFor(append.last, WAIT_MS);
    await two.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
  });
});

describe('when something breaks', () => {
  test('another runner takes over when the connection of the active one dies', async (context) => {
    const { pool, store, append } = await setUp(context);
    const models = [counting()];
    let partitioned = false;
    const mortal = replacing(pool, (text) =>
      partitioned && text.includes('pg_try_advisory_lock') ? { rows: [{ taken: false }] } : null,
    );
    const one = await startRunner(context, { events: store, database: mortal, models });
    await one.runner.waitFor(append.last, WAIT_MS);
    const two = await startRunner(context, { events: store, database: pool, models });
    const before = await appendSome(append, 3, 3);
    await two.runner.waitFor(append.last, WAIT_MS);
    assert.equal(two.applied.length, 0, 'the second led although the first lived');
    partitioned = true;
    assert.equal(await killLeader(pool), 1);
    const after = await appendSome(append, 3, 3);
    await Promise.all([one.runner.waitFor(append.last, WAIT_MS), two.runner.waitFor(append.last, WAIT_MS)]);
    assert.ok(two.applied.length > 0);
    assert.deepEqual(await counts(pool), { ...before, ...after });
  });

  test('a runner whose connection dies starts anew by itself', async (context) => {
    const { pool, store, append } = await setUp(context);
    const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
    const before = await appendSome(append, 2, 5);
    await runner.waitFor(append.last, WAIT_MS);
    await killLeader(pool);
    const after = await appendSome(append, 2, 5);
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), { ...before, ...after });
  });

  for (const moment of ['between apply and commit', 'after the commit, before its answer'] as const) {
    test(`a crash ${moment} loses and doubles nothing`, async (context) => {
      const { pool, store, append } = await setUp(context);
      let crashes = 0;
      const crashing = replacing(pool, async (text, client) => {
        if (text !== 'COMMIT' || crashes >= 3) return null;
        crashes += 1;
        if (moment !== 'between apply and commit') await client.query('COMMIT');
        return client.query('SELECT pg_terminate_backend(pg_backend_pid())');
      });
      const { runner } = await startRunner(context, { events: store, database: crashing, models: [counting()] });
      let expected = {};
      for (let round = 0; round < 4; round += 1) {
        expected = { ...expected, ...(await appendSome(append, 5, 5)) };
        await runner.waitFor(append.last, WAIT_MS);
      }
      assert.equal(crashes, 3);
      assert.deepEqual(await counts(pool), expected);
    });
  }

  test('tables that were dropped are built again, by a running process and at a start', async (context) => {
    const { pool, store, append } = await setUp(context);
    const first = await startRunner(context, { events: store, database: pool, models: [counting()] });
    const before = await appendSome(append, 3, 3);
    await first.runner.waitFor(append.last, WAIT_MS);
    await pool.query(`DROP TABLE ${await liveTable(pool, 'counts')}`);
    const after = await appendSome(append, 1, 1);
    await until(async () => {
      const found = await counts(pool).catch(() => ({}));
      return Object.keys(found).length === 4;
    });
    assert.deepEqual(await counts(pool), { ...before, ...after });
    await first.runner.close();
    await pool.query('DROP SCHEMA read_models CASCADE');
    const second = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await second.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), { ...before, ...after });
  });

  test('a log that holds another event than the model was built from halts it, loudly', async (context) => {
    const { pool, store, append } = await setUp(context);
    const first = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await appendSome(append, 1, 2);
    await first.runner.waitFor(append.last, WAIT_MS);
    await first.runner.close();
    await pool.query(`UPDATE read_models.checkpoints SET event_id = gen_random_uuid()`);
    const second = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await until(() => second.log.lines.some(({ message }) => message.includes('halted')));
    const { rows } = await pool.query('SELECT halted FROM read_models.projections');
    assert.match(rows[0]?.halted, /was built from event/);
    // A rebuild replaces what is wrong, and the runner goes on with it.
    await second.runner.rebuild('counting');
    const after = await appendSome(append, 1, 1);
    await until(async () => Object.keys(await counts(pool)).length === 2);
    assert.deepEqual(
      Object.values(await counts(pool)).sort((a, b) => a - b),
      [1, 2],
    );
    assert.ok(Object.keys(after).length === 1);
  });
});

describe('closing', () => {
  test('gives up a batch that takes long, which a later start applies', async (context) => {
    const { pool, store, append } = await setUp(context);
    let reading = false;
    const stuck = counting();
    const models = [
      {
        ...stuck,
        open: () => ({
          prepare: () => {
            reading = true;
            return new Promise<never>(() => undefined);
          },
        }),
      },
    ];
    const first = await startRunner(context, { events: store, database: pool, models });
    const expected = await appendSome(append, 1, 1);
    await until(() => reading);
    await first.runner.close();
    const second = await startRunner(context, { events: store, database: pool, models: [stuck] });
    await second.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
  });
});

describe('an event that cannot be applied', () => {
  const poisoned = streamName('account', newUuid());

  test('is parked with the later ones of its stream, and replayed on request', async (context) => {
    const { pool, store, append } = await setUp(context);
    let mended = false;
    const poison = (event: RecordedEvent): void => {
      if (event.stream === poisoned && event.revision === 1 && !mended) throw new Error('cannot be applied');
    };
    const models = [counting({ poison })];
    const { runner, log } = await startRunner(context, { events: store, database: pool, models });
    const add = (): Promise<LogPosition> => append.append(poisoned, newUuid(), 'PlanChanged', { plan: 'PRO' });
    await add();
    await add();
    const others = await appendSome(append, 2, 2);
    await add();
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), { ...others, [poisoned]: 1 });
    assert.deepEqual(await runner.parked(), [
      {
        projection: 'counting',
        stream: poisoned,
        revision: 1,
        events: 2,
        attempts: 1,
        error: 'Error: cannot be applied',
      },
    ]);
    assert.ok(log.lines.some(({ level, message }) => level === 'error' && message.includes('parked')));
    // Asked too early it stays parked; afterwards nothing is lost and the order is kept.
    assert.equal(await runner.replay(poisoned), 1);
    await until(async () => (await runner.parked())[0]?.attempts === 2);
    await add();
    await runner.waitFor(append.last, WAIT_MS);
    assert.equal((await runner.parked())[0]?.events, 3);
    mended = true;
    assert.equal(await runner.replay(null), 1);
    await until(async () => (await runner.parked()).length === 0);
    await add();
    await runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), { ...others, [poisoned]: 5 });
  });

  test('stays parked over a restart', async (context) => {
    const { pool, store, append } = await setUp(context);
    const poison = (event: RecordedEvent): void => {
      if (event.stream === poisoned && event.revision === 0) throw new Error('cannot be applied');
    };
    const first = await startRunner(context, { events: store, database: pool, models: [counting({ poison })] });
    await append.append(poisoned, newUuid(), 'PlanChanged', { plan: 'PRO' });
    await first.runner.waitFor(append.last, WAIT_MS);
    await first.runner.close();
    const second = await startRunner(context, { events: store, database: pool, models: [counting()] });
    await append.append(poisoned, newUuid(), 'PlanChanged', { plan: 'PRO' });
    await second.runner.waitFor(append.last, WAIT_MS);
    assert.equal((await second.runner.parked())[0]?.events, 2);
    assert.deepEqual(await counts(pool), {});
  });

  test('halts a model that says so, without moving over it', async (context) => {
    const { pool, store, append } = await setUp(context);
    let mended = false;
    const poison = (event: RecordedEvent): void => {
      if (event.stream === poisoned && !mended) throw new Error('cannot be applied');
    };
    const models = [counting({ poison, onPoison: 'halt' })];
    const { runner, log } = await startRunner(context, { events: store, database: pool, models });
    const others = await appendSome(append, 1, 1);
    await append.append(poisoned, newUuid(), 'PlanChanged', { plan: 'PRO' });
    await until(() => log.lines.some(({ message }) => message.includes('halted')));
    assert.deepEqual(await counts(pool), others);
    mended = true;
    await runner.replay(null);
    await until(async () => Object.keys(await counts(pool)).length === 2);
    assert.deepEqual(await counts(pool), { ...others, [poisoned]: 1 });
  });
});

describe('building beside the live model', () => {
  test('a rebuild takes over while events flow, and the old tables go', async (context) => {
    const { pool, store, append } = await setUp(context);
    const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
    let expected = await appendSome(append, 5, 20);
    await runner.waitFor(append.last, WAIT_MS);
    const before = await liveTable(pool, 'counts');
    let flowing = true;
    const flow = (async () => {
      while (flowing) {
        expected = { ...expected, ...(await appendSome(append, 1, 1)) };
        await sleep(1);
      }
    })();
    await runner.rebuild(null);
    await sleep(20);
    flowing = false;
    await flow;
    await runner.waitFor(append.last, WAIT_MS);
    assert.notEqual(await liveTable(pool, 'counts'), before);
    await until(async () => Object.keys(await counts(pool)).length === Object.keys(expected).length);
    assert.deepEqual(await counts(pool), expected);
    const { rows } = await pool.query(`SELECT tablename FROM pg_tables WHERE tablename LIKE 'counts%'`);
    assert.equal(rows.length, 1);
  });

  test('verification finds every kind of manipulated row, and a rebuild mends them', async (context) => {
    const { pool, store, append } = await setUp(context);
    const { runner } = await startRunner(context, { events: store, database: pool, models: [counting()] });
    const expected = await appendSome(append, 4, 2);
    await runner.waitFor(append.last, WAIT_MS);
    const [sound] = await runner.verify(null);
    assert.deepEqual([sound?.rows, sound?.differences], [4, 0]);
    const [changed = '', removed = ''] = Object.keys(expected);
    const table = await liveTable(pool, 'counts');
    await pool.query(`UPDATE ${table} SET events = events + 1 WHERE stream = $1`, [changed]);
    await pool.query(`DELETE FROM ${table} WHERE stream = $1`, [removed]);
    await pool.query(`INSERT INTO ${table} VALUES ('account-invented', 1)`);
    const [found] = await runner.verify('counting');
    assert.equal(found?.differences, 3);
    const kinds = new Map(found?.examples.map(({ key, kind }) => [key, kind]));
    assert.equal(kinds.get(`(${changed})`), 'different');
    assert.equal(kinds.get(`(${removed})`), 'missing');
    assert.equal(kinds.get('(account-invented)'), 'extra');
    await runner.rebuild('counting');
    const [mended] = await runner.verify('counting');
    assert.equal(mended?.differences, 0);
    const { rows } = await pool.query(`SELECT count(*)::int AS n FROM pg_tables WHERE tablename LIKE 'counts%'`);
    assert.deepEqual(rows, [{ n: 1 }]);
  });

  test('works without any runner started, as the command line does', async (context) => {
    const { pool, store, append } = await setUp(context);
    const expected = await appendSome(append, 2, 2);
    const { runner } = newRunner(context, { events: store, database: pool, models: [counting()] });
    await runner.rebuild(null);
    assert.deepEqual(await counts(pool), expected);
    const [result] = await runner.verify(null);
    assert.equal(result?.differences, 0);
  });

  test('a new version of a model is built anew and the old one dropped', async (context) => {
    const { pool, store, append } = await setUp(context);
    const first = await startRunner(context, { events: store, database: pool, models: [counting()] });
    const expected = await appendSome(append, 2, 2);
    await first.runner.waitFor(append.last, WAIT_MS);
    const second = await startRunner(context, { events: store, database: pool, models: [counting({ version: 2 })] });
    await second.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
    // The old program still runs: its tables stay.
    const tables = async (): Promise<number> =>
      (await pool.query(`SELECT 1 FROM pg_tables WHERE tablename LIKE 'counts%'`)).rowCount ?? 0;
    assert.equal(await tables(), 2);
    await first.runner.close();
    await second.runner.close();
    const third = await startRunner(context, { events: store, database: pool, models: [counting({ version: 2 })] });
    await third.runner.waitFor(append.last, WAIT_MS);
    await until(async () => (await tables()) === 1);
  });
});
