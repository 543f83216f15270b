/** The cost of an append on the server does not grow while a long transaction, such as a dump, holds a snapshot. */
import assert from 'node:assert/strict';
import type pg from 'pg';
import { describe, test } from 'vitest';
import { cleanUp } from '../../support/cleanup.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { databaseAlone } from '../../support/postgres.ts';
import { openClient, openDatabase, openStore } from './open-store.ts';

/**
 * How many pages PostgreSQL reads for one append. Returns the least of five calls, because a call also reads catalogs
 * if PostgreSQL has just analyzed the table and so made the plan invalid.
 */
async function leastPagesOfAppend(client: pg.Client): Promise<number> {
  const pages: number[] = [];
  for (let n = 0; n < 5; n++) pages.push(await pagesOfOneAppend(client));
  return Math.min(...pages);
}

async function pagesOfOneAppend(client: pg.Client): Promise<number> {
  const event = { event_id: newEvent().id, type: 'T', version: 1, occurred_at: 'now', data: '{}' };
  const actor = { actor_kind: 'system', actor_id: 'test', request_id: 'r' };
  const batch = JSON.stringify([{ stream: newStream(), expected: -1, events: [{ ...event, ...actor }] }]);
  const explain = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT append_events('${batch}')`;
  const { rows } = await client.query(explain);
  const plan = rows[0]['QUERY PLAN'][0].Plan;
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
}

describe('appending under a long snapshot', () => {
  test('updates no row and reads no more pages than without one', async (context) => {
    const database = await databaseAlone();
    cleanUp(context, () => database.close());
    const { connectionString } = database;
    const { store } = openStore(context, connectionString);
    const client = await openClient(context, connectionString);
    const hot = newStream();
    for (let n = 0; n < 300; n++) {
      await store.append({ stream: hot, expected: n === 0 ? 'none' : n - 1, events: [newEvent()] });
    }
    // The first calls of a session also read catalogs.
    for (let n = 0; n < 10; n++) await pagesOfOneAppend(client);
    const before = await leastPagesOfAppend(client);

    const dump = await openClient(context, connectionString);
    await dump.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await dump.query('SELECT count(*) FROM events');
    for (let n = 300; n < 2_000; n++) {
      await store.append({ stream: hot, expected: n - 1, events: [newEvent()] });
    }
    const under = await leastPagesOfAppend(client);
    assert.ok(under <= before + 5, `${before} pages before, ${under} under the snapshot`);

    await store.close();
    await client.query('SELECT pg_stat_force_next_flush()');
    const { rows } = await client.query(
      "SELECT n_tup_upd, n_tup_del, n_dead_tup FROM pg_stat_user_tables WHERE relname = 'events'",
    );
    assert.deepEqual(rows, [{ n_tup_upd: '0', n_tup_del: '0', n_dead_tup: '0' }]);
  });
});

describe('an append', () => {
  test('that is refused leaves no gap in the positions', async (context) => {
    const connectionString = await openDatabase(context);
    const { store } = openStore(context, connectionString);
    const stream = newStream();
    const taken = newEvent();
    await store.append({ stream, expected: 'none', events: [taken] });
    await Promise.allSettled(
      Array.from({ length: 50 }, (_, n) => {
        const events = n % 5 === 0 ? [newEvent(), taken] : [newEvent()];
        return store.append({ stream: n % 3 === 0 ? stream : newStream(), expected: 'none', events });
      }),
    );
    const all = await store.readAll(0n as never, 1_000);
    assert.ok(all.length > 20);
    assert.deepEqual(
      all.map((event) => event.position),
      all.map((_, index) => BigInt(index + 1)),
    );
  });

  test('that reuses the id of another event is refused, and the others of its batch succeed', async (context) => {
    const { store } = openStore(context, await openDatabase(context));
    const taken = newEvent();
    await store.append({ stream: newStream(), expected: 'none', events: [taken] });
    const [before, reused, after] = await Promise.allSettled([
      store.append({ stream: newStream(), expected: 'none', events: [newEvent()] }),
      store.append({ stream: newStream(), expected: 'none', events: [newEvent(), taken] }),
      store.append({ stream: newStream(), expected: 'none', events: [newEvent()] }),
    ]);
    assert.equal(before?.status, 'fulfilled');
    assert.equal(after?.status, 'fulfilled');
    assert.ok(reused?.status === 'rejected');
    assert.equal(reused.reason.code, 'invalid-event');
  });

  test('that PostgreSQL itself refuses does not fail the others of its batch', async (context) => {
    const connectionString = await openDatabase(context);
    const client = await openClient(context, connectionString);
    await client.query("ALTER TABLE events ADD CHECK (type <> 'Refused')");
    const { store } = openStore(context, connectionString);
    const outcomes = await Promise.allSettled(
      ['Taken', 'Refused', 'Taken'].map((type) =>
        store.append({ stream: newStream(), expected: 'none', events: [newEvent({ type })] }),
      ),
    );
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
  });
});
