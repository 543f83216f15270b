/** Several nodes that write one log: all see one order, and no append commits against a newer state of another node. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START, type LogPosition } from '../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { collect, lastOf, newEvent, newStream } from '../../support/events.ts';
import { openDatabase, openStore } from './open-store.ts';

const NODES = 4;
const WRITERS_A_NODE = 16;
const APPENDS_EACH = 25;

describe('several nodes', () => {
  test('with 64 appenders deliver each event once to every subscriber, in one order without gaps', async (context) => {
    const connectionString = await openDatabase(context);
    const stores = Array.from({ length: NODES }, () => openStore(context, connectionString).store);
    const live = stores.map((store) => collect(store, LOG_START));
    await Promise.all(
      stores.flatMap((store) =>
        Array.from({ length: WRITERS_A_NODE }, async () => {
          const stream = newStream();
          for (let n = 0; n < APPENDS_EACH; n++) {
            const result = await store.append({ stream, expected: n === 0 ? 'none' : n - 1, events: [newEvent()] });
            assert.equal(result.outcome, 'appended');
          }
        }),
      ),
    );
    const total = NODES * WRITERS_A_NODE * APPENDS_EACH;
    for (const collector of live) {
      await collector.until(() => lastOf(collector.positions) === BigInt(total));
      assert.deepEqual(
        collector.events.map((event) => event.position),
        Array.from({ length: total }, (_, index) => BigInt(index + 1)),
      );
      assert.deepEqual(
        collector.events.map((event) => event.id),
        live[0]?.events.map((event) => event.id),
      );
    }
  });

  test('that race for one stream fill each of its revisions once', async (context) => {
    const connectionString = await openDatabase(context);
    const stores = Array.from({ length: NODES }, () => openStore(context, connectionString).store);
    const stream = newStream();
    const wins = await Promise.all(
      stores.map(async (store) => {
        let won = 0;
        for (let expected: number | 'none' = 'none'; expected === 'none' || expected < 100; ) {
          const result = await store.append({ stream, expected, events: [newEvent()] });
          if (result.outcome === 'appended') won += 1;
          expected = result.outcome === 'appended' ? result.revision : result.actual;
        }
        return won;
      }),
    );
    const [store] = stores;
    const events = (await store?.readStream(stream, { direction: 'forwards', limit: 1_000 })) ?? [];
    assert.equal(
      wins.reduce((a, b) => a + b),
      events.length,
    );
    assert.deepEqual(
      events.map((event) => event.revision),
      events.map((_, index) => index),
    );
  });

  test('refuse every append whose guard another node has outdated', async (context) => {
    const connectionString = await openDatabase(context);
    const { store: pushing } = openStore(context, connectionString);
    const { store: revoking } = openStore(context, connectionString);
    for (let round = 0; round < 20; round++) {
      const token = newStream('accessToken');
      const created = await revoking.append({ stream: token, expected: 'none', events: [newEvent()] });
      assert.equal(created.outcome, 'appended');
      const guards = [{ stream: token, revision: 0 }];
      const push = () => pushing.append({ stream: newStream(), expected: 'none', events: [newEvent()], guards });
      const racing = Array.from({ length: 10 }, push);
      const revoked = await revoking.append({ stream: token, expected: 0, events: [newEvent()] });
      assert.ok(revoked.outcome === 'appended');
      for (const result of await Promise.all(racing)) {
        assert.ok(result.outcome === 'conflict' || result.position < revoked.position);
      }
      assert.equal((await push()).outcome, 'conflict');
    }
  });

  test('return a head that covers every append that any of them has acknowledged', async (context) => {
    const connectionString = await openDatabase(context);
    const { store: writing } = openStore(context, connectionString);
    const { store: reading } = openStore(context, connectionString);
    for (let n = 0; n < 100; n++) {
      const concurrentRead = reading.head();
      const result = await writing.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      assert.ok(result.outcome === 'appended');
      assert.ok((await reading.head()) >= result.position);
      await concurrentRead;
    }
  });

  test('that append while a subscriber is busy need no poll to be seen behind its own node', async (context) => {
    const connectionString = await openDatabase(context);
    const [own, other] = [openStore(context, connectionString).store, openStore(context, connectionString).store];
    const appendOne = (store: EventStore) =>
      store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    const busy = Promise.withResolvers<void>();
    const seen: LogPosition[] = [];
    const all = Promise.withResolvers<void>();
    own.subscribe({
      after: LOG_START,
      onEvents: async (_events, position) => {
        seen.push(position);
        if (seen.length === 1) await busy.promise;
        if (position === 3n) all.resolve();
      },
    });
    const witness = collect(own, LOG_START);
    await appendOne(own);
    await witness.until(() => lastOf(witness.positions) === 1n);
    await appendOne(own);
    await appendOne(other);
    // Now this node has been told of both.
    await witness.until(() => lastOf(witness.positions) === 3n);
    await witness.subscription.close();
    const begun = performance.now();
    busy.resolve();
    await all.promise;
    const tookMs = performance.now() - begun;
    assert.ok(tookMs < 400, `${tookMs} ms, as after a lost notification`);
  });
});
