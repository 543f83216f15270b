/** Subscriptions at the end of the log share one stream and do not affect one another. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START, type LogPosition, type RecordedEvent } from '../../../core/kernel/envelope.ts';
import type { EventId } from '../../../core/kernel/ids.ts';
import type { EventStore, Subscription } from '../../../core/ports/event-store.ts';
import { type Collector, collect, lastOf, newEvent, newStream } from '../../support/events.ts';
import { openLog } from '../../support/eventstoredb/open-log.ts';
import { eventually } from '../../support/processes.ts';

const SUBSCRIBERS = 12;
const LARGE = 'x'.repeat(900_000);

async function append(store: EventStore, category?: string, note = ''): Promise<EventId> {
  const event = newEvent({ data: { note } });
  const result = await store.append({ stream: newStream(category), expected: 'none', events: [event] });
  assert.equal(result.outcome, 'appended');
  return event.id;
}

const idsOf = (events: readonly RecordedEvent[]): readonly EventId[] => events.map(({ id }) => id);

/** Resolves when the collector has got everything that the log holds now. */
async function untilHead(store: EventStore, collector: Collector): Promise<void> {
  const head = await store.head();
  await collector.until(() => lastOf(collector.positions) >= head);
}

interface BusySubscriber {
  readonly events: RecordedEvent[];
  readonly subscription: Subscription;
  /** Resolves when it has got its first events. */
  readonly busy: Promise<void>;
  release(): void;
}

/** A subscriber whose `onEvents` does not resolve for its first events until `release` is called. */
function subscribeBusy(store: EventStore, after: LogPosition): BusySubscriber {
  const events: RecordedEvent[] = [];
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const onEvents = async (batch: readonly RecordedEvent[]): Promise<void> => {
    events.push(...batch);
    if (batch.length === 0) return;
    begun.resolve();
    await released.promise;
  };
  return { events, subscription: store.subscribe({ after, onEvents }), busy: begun.promise, release: released.resolve };
}

describe('subscriptions at the end of EventStoreDB', () => {
  test('share one stream, each with its categories and a position that every event moves', async (context) => {
    const { server, store } = await openLog(context);
    const earlier = await append(store);
    const all = Array.from({ length: SUBSCRIBERS }, (_, n) =>
      collect(store, LOG_START, [undefined, ['account'], ['repository']][n % 3]),
    );
    for (const one of all) await untilHead(store, one);
    const [account, repository] = [await append(store, 'account'), await append(store)];
    server.appendSystemEvent();
    for (const one of all) await untilHead(store, one);
    for (const [n, { events }] of all.entries()) {
      assert.deepEqual(idsOf(events), [[earlier, account, repository], [account], [earlier, repository]][n % 3]);
    }
    assert.deepEqual([server.counts.subscriptions, server.openSubscriptions()], [1, 1]);
    await Promise.all(all.map(({ subscription }) => subscription.close()));
    await eventually('the stream is closed when nobody reads it', async () => server.openSubscriptions() === 0);
  });

  test('do not wait for a slow one, which reads what it missed separately and joins them again', {
    timeout: 60_000,
  }, async (context) => {
    const { server, store } = await openLog(context, { subscriptionQuietMs: 60_000 });
    const slow = subscribeBusy(store, await store.head());
    await eventually('it has read to the end', async () => server.openSubscriptions() === 1);
    const fast = collect(store, LOG_START);
    const written = [await append(store)];
    await slow.busy;
    await untilHead(store, fast);
    // More bytes than the buffer may hold for a slow reader.
    for (let n = 0; n < 20; n += 1) written.push(await append(store, 'repository', LARGE));
    await untilHead(store, fast);
    assert.deepEqual(idsOf(fast.events), written);
    assert.equal(slow.events.length, 1);
    const reads = server.counts.allReads;
    slow.release();
    await eventually('it has caught up', async () => slow.events.length === written.length);
    assert.ok(server.counts.allReads > reads);
    written.push(await append(store));
    await eventually('both go on', async () => [slow, fast].every(({ events }) => events.length === written.length));
    assert.deepEqual([idsOf(slow.events), idsOf(fast.events)], [written, written]);
    // On a slow machine the fast one can lose its place too. Then the stream is a new one, and still the only one.
    assert.equal(server.openSubscriptions(), 1);
  });

  test('close their stream while the only one of them is too slow for it', {
    timeout: 60_000,
  }, async (context) => {
    const { server, store } = await openLog(context, { subscriptionQuietMs: 60_000 });
    const slow = subscribeBusy(store, await store.head());
    await eventually('it has read to the end', async () => server.openSubscriptions() === 1);
    const written = [await append(store)];
    await slow.busy;
    for (let n = 0; n < 20; n += 1) written.push(await append(store, 'repository', LARGE));
    await eventually('the stream has ended', async () => server.openSubscriptions() === 0);
    slow.release();
    await eventually('it has caught up', async () => slow.events.length === written.length);
    await eventually('it is back at the end', async () => server.openSubscriptions() === 1);
    written.push(await append(store));
    await eventually('it goes on', async () => slow.events.length === written.length);
    assert.deepEqual(idsOf(slow.events), written);
  });

  test('leave no gap for one that joins them while the log grows', async (context) => {
    const { server, store } = await openLog(context, { subscriptionQuietMs: 60_000 });
    const written = [await append(store)];
    const atEnd = collect(store, LOG_START);
    await atEnd.until(() => atEnd.events.length === 1);
    // It has read to the end. Before it takes its place there, the others take one more event.
    const joining = subscribeBusy(store, LOG_START);
    await joining.busy;
    written.push(await append(store));
    await untilHead(store, atEnd);
    joining.release();
    await eventually('it has the event between', async () => joining.events.length === 2);
    written.push(await append(store));
    await eventually('it has the next', async () => joining.events.length === 3);
    assert.deepEqual(idsOf(joining.events), written);
    assert.equal(server.counts.subscriptions, 1);
  });

  test('deliver nothing twice to one that has read further than their stream', async (context) => {
    const { server, store } = await openLog(context, { subscriptionQuietMs: 60_000 });
    const atEnd = collect(store, LOG_START);
    const written = [await append(store)];
    await atEnd.until(() => atEnd.events.length === 1);
    await eventually('it has its place', async () => server.openSubscriptions() === 1);
    server.faults.mute = true;
    written.push(await append(store));
    const further = collect(store, LOG_START);
    await further.until(() => further.events.length === 2);
    assert.equal(atEnd.events.length, 1);
    server.faults.mute = false;
    written.push(await append(store));
    await untilHead(store, further);
    await untilHead(store, atEnd);
    assert.deepEqual([idsOf(further.events), idsOf(atEnd.events)], [written, written]);
    assert.equal(server.counts.subscriptions, 1);
  });

  test('resume from their own positions when their stream breaks, on one stream again', {
    timeout: 60_000,
  }, async (context) => {
    const { server, store } = await openLog(context);
    const first = subscribeBusy(store, await store.head());
    await eventually('it has read to the end', async () => server.openSubscriptions() === 1);
    const written = [await append(store)];
    await first.busy;
    written.push(await append(store));
    const second = subscribeBusy(store, LOG_START);
    await second.busy;
    written.push(await append(store));
    const collected = Array.from({ length: 4 }, () => collect(store, LOG_START));
    for (const one of collected) await untilHead(store, one);
    await server.restart();
    written.push(await append(store));
    for (const one of collected) await untilHead(store, one);
    assert.deepEqual([first.events.length, second.events.length], [1, 2]);
    second.release();
    await server.restart();
    first.release();
    written.push(await append(store));
    const everyone = [first, second, ...collected];
    await eventually('all have every event', async () =>
      everyone.every(({ events }) => events.length >= written.length),
    );
    for (const { events } of everyone) assert.deepEqual(idsOf(events), written);
    await eventually('they share one stream', async () => server.openSubscriptions() === 1);
  });

  test('start again when their connection is given up', { timeout: 30_000 }, async (context) => {
    const { server, store } = await openLog(context, { subscriptionQuietMs: 60_000 });
    const all = [collect(store, await store.head()), collect(store, await store.head(), ['repository'])];
    await eventually('they have read to the end', async () => server.openSubscriptions() === 1);
    let attempts = 0;
    server.faults.append = () => (attempts++ === 0 ? 'stall' : null);
    const written = [await append(store), await append(store)];
    for (const one of all) await one.until(() => one.events.length === 2);
    assert.deepEqual(
      all.map(({ events }) => idsOf(events)),
      [written, written],
    );
  });

  test('go on when a read ahead failed while the subscriber was busy', { timeout: 30_000 }, async (context) => {
    const { server, store } = await openLog(context);
    const events = Array.from({ length: 1_500 }, () => newEvent({ data: {} }));
    for (const part of [events.slice(0, 700), events.slice(700, 1_400), events.slice(1_400)]) {
      await store.append({ stream: newStream(), expected: 'none', events: part });
    }
    let reads = 0;
    const ahead = Promise.withResolvers<void>();
    server.faults.read = (what) => {
      reads += what === 'all' ? 1 : 0;
      // The first read is the head, the second the first window, the third the window that is read ahead.
      if (reads !== 3) return;
      ahead.resolve();
      return new Promise(() => undefined);
    };
    const busy = subscribeBusy(store, LOG_START);
    await Promise.all([busy.busy, ahead.promise]);
    await server.restart();
    await store.head();
    busy.release();
    await eventually('it has every event', async () => busy.events.length >= events.length);
    assert.deepEqual(
      idsOf(busy.events),
      events.map(({ id }) => id),
    );
  });

  test('close in the middle of their own reads, and leave the connection open', {
    timeout: 30_000,
  }, async (context) => {
    // Far longer than the test may take: only the closing ends the read.
    const { server, store, log } = await openLog(context, { readSilenceMs: 3_600_000 });
    await append(store);
    let reads = 0;
    const requested = Promise.withResolvers<void>();
    server.faults.read = (what) => {
      reads += what === 'all' ? 1 : 0;
      if (reads < 2) return;
      requested.resolve();
      return new Promise(() => undefined);
    };
    const reading = collect(store, LOG_START);
    await requested.promise;
    await reading.subscription.close();
    server.faults.read = null;
    await append(store);
    assert.deepEqual(reading.events, []);
    assert.ok(!log.lines.some(({ message }) => message.includes('again')));
  });
});
