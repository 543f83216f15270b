/** The runner: checkpoints, takeover, poison events, rebuilds and read-your-writes, on a real PostgreSQL. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { LogPosition, RecordedEvent } from '../../core/kernel/envelope.ts';
import { streamName } from '../../core/kernel/envelope.ts';
import { ReadModelError } from '../../core/ports/read-models.ts';
import { forAll } from '../../projections/runner/bulk.ts';
import type { Projection } from '../../projections/runner/projection.ts';
import { newDatabase, startDatabase } from '../support/read-model-database.ts';
import { Appender, createMemoryEventStore, newRunner, newUuid, startRunner } from '../support/read-models.ts';

const WAIT_MS = 10_000;

const connectionString = await startDatabase();

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
        return async (transaction) => {
          await forAll(
            transaction,
            [...counts.values()],
            `INSERT INTO ${table('counts')} AS c SELECT * FROM json_to_recordset($1) AS r(stream text, events integer)
              ON CONFLICT (stream) DO UPDATE SET events = c.events + excluded.events`,
          );
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
  const pool = await newDatabase(context, connectionString);
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
  const connect = async (): Promise<pg.PoolClient> => {
    const client = await pool.connect();
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    const value = (...args: unknown[]): Promise<unknown> => {
      const asksForLock = JSON.stringify(args[0])?.includes('pg_try_advisory_lock') === true;
      return asksForLock ? Promise.resolve({ rows: [{ taken: true }] }) : query(...args);
    };
    return Object.defineProperty(client, 'query', { value, configurable: true });
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
    const expected = await appendSome(append, 20, 20);
    await one.runner.waitFor(append.last, WAIT_MS);
    await two.runner.waitFor(append.last, WAIT_MS);
    assert.deepEqual(await counts(pool), expected);
    const lost = [...one.log.lines, ...two.log.lines].filter(({ message }) => message.includes('changed under'));
    assert.ok(lost.length > 0, 'neither ever lost a race: this test proves nothing');
  });
});
