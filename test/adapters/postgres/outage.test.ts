/** PostgreSQL ends and is started again: appends and subscriptions continue without the caller's help. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { LOG_START, type LogPosition } from '../../../core/kernel/envelope.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { collect, lastOf, newEvent, newStream } from '../../support/events.ts';
import { databaseOn, startTestCluster, type TestCluster } from '../../support/postgres.ts';
import { openClient, openStore } from './open-store.ts';

const WRITERS = 8;

describe('an outage of PostgreSQL', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await startTestCluster({ fsync: 'on', full_page_writes: 'on' });
  });
  afterAll(() => cluster.stop());

  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    test(`by ${signal} loses no append and no event, and repeats none`, { timeout: 60_000 }, async (context) => {
      const { connectionString } = await databaseOn(cluster.connectionString);
      const { store, log } = openStore(context, connectionString);
      const live = collect(store, LOG_START);
      const filtered = collect(store, LOG_START, ['account']);
      const acknowledged: string[] = [];
      let writing = true;
      const writers = Array.from({ length: WRITERS }, async () => {
        while (writing) {
          const event = newEvent();
          const result = await store.append({ stream: newStream(), expected: 'none', events: [event] });
          assert.equal(result.outcome, 'appended');
          acknowledged.push(event.id);
        }
      });
      await live.until(() => live.events.length > 100);
      const killed = cluster.embedded.pid();
      process.kill(killed ?? 0, signal);
      while (cluster.embedded.pid() === killed || cluster.embedded.pid() === null) await sleep(5);
      const { length } = acknowledged;
      await live.until(() => acknowledged.length > length + 100);
      writing = false;
      await Promise.all(writers);

      const head = await store.head();
      await live.until(() => lastOf(live.positions) >= head);
      await filtered.until(() => lastOf(filtered.positions) >= head);
      const ids = live.events.map((event) => event.id);
      assert.equal(new Set(ids).size, ids.length);
      assert.deepEqual(ids.toSorted(), acknowledged.toSorted());
      assert.deepEqual(
        live.events.map((event) => event.position),
        live.events.map((_, index) => BigInt(index + 1)),
      );
      assert.ok(log.lines.some((line) => line.message.includes('was lost')));
    });
  }

  test('that ends only the connections is not noticed by callers', async (context) => {
    const { connectionString } = await databaseOn(cluster.connectionString);
    const { store } = openStore(context, connectionString);
    const admin = await openClient(context, cluster.connectionString);
    const live = collect(store, LOG_START);
    for (let n = 0; n < 5; n++) {
      await Promise.all([store.head(), store.readAll(LOG_START, 1)]);
      await admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'strata' AND datname = $1",
        [new URL(connectionString).pathname.slice(1)],
      );
      await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      assert.equal(await store.head(), BigInt(n + 1));
    }
    await live.until(() => live.events.length === 5);
  });

  test('that loses the end of the log ends subscriptions that had seen it', async (context) => {
    const { connectionString } = await databaseOn(cluster.connectionString);
    const { store } = openStore(context, connectionString);
    const admin = await openClient(context, connectionString);
    const append = () => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    for (let n = 0; n < 3; n++) await append();
    const ahead = collect(store, LOG_START);
    await ahead.until(() => ahead.events.length === 3);
    cleanUp(context, () => ahead.subscription.closed.catch(() => {}));
    const lost = assert.rejects(ahead.subscription.closed, { code: 'log-diverged' });
    await admin.query('DELETE FROM events WHERE position = 3');
    ahead.subscription.pull(4n as LogPosition);
    await lost;

    await append();
    const replaced = collect(store, LOG_START);
    await replaced.until(() => replaced.events.length === 3);
    const other = assert.rejects(replaced.subscription.closed, { code: 'log-diverged' });
    await admin.query('UPDATE events SET event_id = gen_random_uuid() WHERE position = 3');
    replaced.subscription.pull(4n as LogPosition);
    await other;
  });
});
