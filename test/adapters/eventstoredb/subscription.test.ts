/** Subscriptions to EventStoreDB resume on their own from their position, which moves over every event of the log. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import * as grpc from '@grpc/grpc-js';
import { describe, test } from 'vitest';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import { collect, lastOf, newEvent, newStream } from '../../support/events.ts';
import { openLog } from '../../support/eventstoredb/open-log.ts';
import { eventually } from '../../support/processes.ts';

describe('a subscription to EventStoreDB', () => {
  test('resumes after restarts of the server, without loss and without duplicates', {
    timeout: 60_000,
  }, async (context) => {
    const { server, store } = await openLog(context);
    const live = collect(store, LOG_START);
    const filtered = collect(store, LOG_START, ['account']);
    const acknowledged: string[] = [];
    let writing = true;
    const writers = Array.from({ length: 8 }, async () => {
      while (writing) {
        const event = newEvent();
        const result = await store.append({ stream: newStream(), expected: 'none', events: [event] });
        assert.equal(result.outcome, 'appended');
        acknowledged.push(event.id);
      }
    });
    for (let round = 1; round <= 3; round += 1) {
      await live.until(() => live.events.length > 50 * round);
      await server.restart();
    }
    writing = false;
    await Promise.all(writers);
    const head = await store.head();
    await live.until(() => lastOf(live.positions) >= head);
    await filtered.until(() => lastOf(filtered.positions) >= head);
    assert.deepEqual(live.events.map(({ id }) => id).toSorted(), acknowledged.toSorted());
    const places = live.events.map(({ position }) => position);
    assert.deepEqual(
      places,
      places.toSorted((a, b) => (a < b ? -1 : 1)),
    );
  });

  test("moves its position over the server's own events, which can be the head", async (context) => {
    const { server, store, log } = await openLog(context, { subscriptionQuietMs: 60_000 });
    const filtered = collect(store, await store.head(), ['account']);
    await eventually('it has read to the end', async () => server.openSubscriptions() === 1);
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    server.appendSystemEvent();
    const head = await store.head();
    await filtered.until(() => lastOf(filtered.positions) === head);
    assert.deepEqual(filtered.events, []);
    assert.equal((await store.readAll(LOG_START, 100)).length, 1);
    assert.ok(!log.lines.some(({ message }) => message.includes('did not write')), 'it logs no warning about them');
  });

  test('says of an outage in one line that it began, however many subscriptions it concerns', {
    timeout: 30_000,
  }, async (context) => {
    const { server, store, log } = await openLog(context);
    const all = Array.from({ length: 16 }, () => collect(store, LOG_START));
    const arrived = async (count: number): Promise<void> => {
      await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      for (const one of all) await one.until(() => one.events.length === count);
    };
    await arrived(1);
    for (const round of [1, 2]) {
      await server.restart();
      await arrived(1 + round);
      const messages = log.lines.map(({ message }) => message);
      assert.equal(messages.length, round, messages.join('\n'));
    }
  });

  test('starts again when the server has forgotten it', { timeout: 30_000 }, async (context) => {
    const { server, store, log } = await openLog(context);
    const live = collect(store, await store.head());
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await live.until(() => live.events.length === 1);
    server.faults.mute = true;
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await sleep(100);
    // The stream that is open stays silent: only another append would wake it.
    server.faults.mute = false;
    await live.until(() => live.events.length === 2);
    assert.ok(log.lines.some(({ message }) => message.includes('start again')));
  });

  test('retries less and less often while the server refuses it', { timeout: 30_000 }, async (context) => {
    const { server, store } = await openLog(context);
    let requests = 0;
    server.faults.read = (what) => {
      if (what !== 'subscription') return;
      requests += 1;
      throw Object.assign(new Error('Not ready'), { code: grpc.status.UNAVAILABLE, details: 'Not ready' });
    };
    const live = collect(store, LOG_START);
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await sleep(1_500);
    // The delays are at least 50, 100, 200, 400 and 800 ms; without delays there would be hundreds of requests.
    assert.ok(requests >= 2 && requests <= 7, `${requests} requests`);
    server.faults.read = null;
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await live.until(() => live.events.length === 2);
  });

  test('ends when the log lost its last event, or holds another in its place', { timeout: 30_000 }, async (context) => {
    const { server, store } = await openLog(context);
    const append = () => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    for (let n = 0; n < 3; n += 1) await append();
    const { length } = server.log.events;
    const ahead = collect(store, LOG_START);
    await ahead.until(() => ahead.events.length === 3);
    const lost = assert.rejects(ahead.subscription.closed, { code: 'log-diverged' });
    server.log.truncate(length - 1);
    await server.restart();
    await lost;

    await append();
    const replaced = collect(store, LOG_START);
    await replaced.until(() => replaced.events.length === 3);
    const other = assert.rejects(replaced.subscription.closed, { code: 'log-diverged' });
    await server.stop();
    server.log.truncate(length - 1);
    // The log is longer than before, and another event is where the last one was.
    for (const id of [crypto.randomUUID(), crypto.randomUUID()]) {
      const event = { id, type: 'ThingHappened', contentType: 'application/json', data: Buffer.from('{}') };
      server.log.append('repository-other', 'any', [{ ...event, metadata: new Uint8Array() }]);
    }
    await server.start();
    await other;
  });

  test('skips an event that Strata did not write, and logs a warning', async (context) => {
    const { server, store, log } = await openLog(context);
    const foreign = { id: crypto.randomUUID(), type: 'Foreign', contentType: 'application/json' };
    server.log.append('foreign-1', 'any', [{ ...foreign, data: Buffer.from('{}'), metadata: new Uint8Array() }]);
    const event = newEvent();
    await store.append({ stream: newStream(), expected: 'none', events: [event] });
    const live = collect(store, LOG_START);
    await live.until(() => live.events.length === 1);
    assert.equal(live.events[0]?.id, event.id);
    assert.deepEqual(
      (await store.readAll(LOG_START, 10)).map(({ id }) => id),
      [event.id],
    );
    assert.ok(log.lines.some(({ message }) => message.includes('did not write')));
    const read = store.readStream('foreign-1' as never, { direction: 'forwards', limit: 1 });
    await assert.rejects(read, { code: 'invalid-event' });
  });
});
