/**
 * A minimal read model and faults for the tests of its runner. The model counts events by stream, so that an event
 * applied twice, or never, shows. The faults are connections that end and answers that never arrive.
 */
import type pg from 'pg';
import type { TestContext } from 'vitest';
import { type RecordedEvent, streamName } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Projection } from '../../projections/runner/projection.ts';
import { newDatabase } from './read-model-database.ts';
import { Appender, createMemoryEventStore, newUuid } from './read-models.ts';

/** A model that counts events by stream: an event applied twice, or never, shows in the counts. */
export function counting(
  faults: Partial<Projection> & { readonly poison?: (event: RecordedEvent) => void } = {},
): Projection {
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
          // A batch with an odd number of events takes a transaction of several statements; an even one takes a single
          // statement.
          ...(events.length % 2 === 0 ? {} : { before: async () => undefined }),
        };
      },
    }),
    ...overrides,
  };
}

export async function liveTable(pool: pg.Pool, table: string, model = 'counting'): Promise<string> {
  const { rows } = await pool.query<{ version: number; live_generation: number }>(
    'SELECT version, live_generation FROM read_models.projections WHERE name = $1 ORDER BY version DESC LIMIT 1',
    [model],
  );
  return `read_models.${table}_v${rows[0]?.version}_${rows[0]?.live_generation}`;
}

export async function counts(pool: pg.Pool): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ stream: string; events: number }>(
    `SELECT * FROM ${await liveTable(pool, 'counts')}`,
  );
  return Object.fromEntries(rows.map(({ stream, events }) => [stream, events]));
}

/** Appends `each` events to each of `streams` new streams, in rotation. Returns the expected counts. */
export async function appendSome(to: Appender, streams: number, each: number): Promise<Record<string, number>> {
  const names = Array.from({ length: streams }, () => streamName('account', newUuid()));
  for (let event = 0; event < each; event += 1) {
    for (const name of names) await to.append(name, newUuid(), 'PlanChanged', { plan: 'PRO' });
  }
  return Object.fromEntries(names.map((name) => [name, each]));
}

export async function setUp(context: TestContext): Promise<{ pool: pg.Pool; store: EventStore; append: Appender }> {
  const pool = await newDatabase(context);
  const store = createMemoryEventStore();
  return { pool, store, append: new Appender(store) };
}

/** Terminates the connection that holds the model's advisory lock, as a crash would. Returns how many it terminated. */
export async function killLeader(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ killed: boolean }>(
    `SELECT pg_terminate_backend(pid) AS killed FROM pg_locks
      WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rows.length;
}

/** The same pool, except that every attempt to take an advisory lock succeeds. */
export function withoutLocks(pool: pg.Pool): pg.Pool {
  return replacing(pool, (text) => (text.includes('pg_try_advisory_lock') ? { rows: [{ taken: true }] } : null));
}

/** The same pool, with `answer` called for each statement of its clients; when it returns null the database answers. */
export function replacing(
  pool: pg.Pool,
  answer: (text: string, client: pg.PoolClient, statement: string | pg.QueryConfig) => unknown,
): pg.Pool {
  const connect = async (): Promise<pg.PoolClient> => {
    const client = await pool.connect();
    return new Proxy(client, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key, target);
        if (typeof member !== 'function') return member;
        if (key !== 'query') return member.bind(target);
        return async (statement: string | pg.QueryConfig) => {
          const text = typeof statement === 'string' ? statement : statement.text;
          return (await answer(text, target, statement)) ?? target.query(statement);
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
