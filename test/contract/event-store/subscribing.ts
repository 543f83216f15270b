/** Subscriptions: every event once, in commit order. Part of the event store's contract. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { LogPosition, RecordedEvent, StreamName } from '../../../core/kernel/envelope.ts';
import type { EventStore, Subscription } from '../../../core/ports/event-store.ts';
import { collect, lastOf, newEvent, newStream } from '../../support/events.ts';

const APPENDERS = 64;
const APPENDS_EACH = 20;

export function subscribingContract(store: () => EventStore): void {
  describe('subscribing', () => {
    test('with 64 appenders at work gives every event exactly once and in order', { timeout: 120_000 }, async () => {
      const start = await store().head();
      const live = collect(store(), start);
      const appended = new Map<string, bigint>();
      const writers = Array.from({ length: APPENDERS }, async (_, writer) => {
        const stream = newStream();
        for (let n = 0; n < APPENDS_EACH; n++) {
          // Requests of one and of several events, so that batches mix.
          const events = Array.from({ length: 1 + ((writer + n) % 3) }, () => newEvent());
          const expected = await revisionOf(store(), stream);
          const result = await store().append({ stream, expected, events });
          assert.ok(result.outcome === 'appended');
          const last = events.at(-1);
          assert.ok(last !== undefined);
          for (const event of events) appended.set(event.id, event === last ? result.position : 0n);
        }
      });
      await Promise.all(writers);
      const end = await store().head();
      await live.until(() => lastOf(live.positions) >= end);
      const late = collect(store(), start);
      await late.until(() => lastOf(late.positions) >= end);
      for (const { events, subscription } of [live, late]) {
        await subscription.close();
        const ours = events.filter((event) => appended.has(event.id));
        assert.equal(ours.length, appended.size);
        assert.equal(new Set(ours.map((event) => event.id)).size, appended.size);
        const nextRevision = new Map<StreamName, number>();
        for (const [index, event] of events.entries()) {
          if (index > 0) assert.ok(event.position > (events[index - 1]?.position ?? 0n));
          const position = appended.get(event.id);
          if (position === undefined) continue;
          if (position !== 0n) assert.equal(event.position, position, 'the position its appender was told');
          assert.equal(event.revision, nextRevision.get(event.stream) ?? 0);
          nextRevision.set(event.stream, event.revision + 1);
        }
      }
    });

    test('begun one after another while appends go on, slow ones too, each gives all behind its start once', {
      timeout: 60_000,
    }, async () => {
      const start = await store().head();
      let writing = true;
      const writers = Array.from({ length: 4 }, async () => {
        while (writing) {
          await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
          await nextTurn();
        }
      });
      const begun: { after: LogPosition; seen: LogPosition[]; subscription: Subscription }[] = [];
      for (let n = 0; n < 12; n += 1) {
        const after = n % 3 === 0 ? start : await store().head();
        const seen: LogPosition[] = [];
        const onEvents = async (events: readonly RecordedEvent[]): Promise<void> => {
          seen.push(...events.map(({ position }) => position));
          if (n % 4 === 3) await sleep(20);
        };
        begun.push({ after, seen, subscription: store().subscribe({ after, onEvents }) });
        await sleep(10);
      }
      writing = false;
      await Promise.all(writers);
      const all = (await store().readAll(start, 100_000)).map(({ position }) => position);
      for (const { after, seen, subscription } of begun) {
        while (lastOf(seen) < lastOf(all)) await sleep(5);
        await subscription.close();
        assert.deepEqual(
          seen,
          all.filter((position) => position > after),
        );
      }
    });

    test('to some categories leaves the others out and still moves its position over them', async () => {
      const start = await store().head();
      const filtered = collect(store(), start, ['account', 'username']);
      const account = newStream('account');
      await store().append({ stream: account, expected: 'none', events: [newEvent()] });
      for (let n = 0; n < 3; n++) {
        await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
        await store().append({ stream: newStream('accountant'), expected: 'none', events: [newEvent()] });
      }
      const end = await store().head();
      await filtered.until(() => lastOf(filtered.positions) >= end);
      await filtered.subscription.close();
      assert.deepEqual(
        filtered.events.map((event) => event.stream),
        [account],
      );
      for (const [index, position] of filtered.positions.entries()) {
        if (index > 0) assert.ok(position > (filtered.positions[index - 1] ?? 0n));
      }
    });

    test('hands over the next batch only after the last was dealt with', async () => {
      const start = await store().head();
      let busy = 0;
      let seen = 0;
      const subscription = store().subscribe({
        after: start,
        onEvents: async (events) => {
          busy += 1;
          assert.equal(busy, 1);
          assert.ok(events.length <= 1_000);
          await new Promise((resolve) => setImmediate(resolve));
          seen += events.length;
          busy -= 1;
        },
      });
      for (let n = 0; n < 20; n++) {
        await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
        subscription.pull();
      }
      while (seen < 20) await new Promise((resolve) => setTimeout(resolve, 5));
      await subscription.close();
      await subscription.closed;
    });

    test('gives more events than one batch holds', async () => {
      const start = await store().head();
      for (let n = 0; n < 3; n++) {
        const events = Array.from({ length: 700 }, () => newEvent());
        await store().append({ stream: newStream(), expected: 'none', events });
      }
      const end = await store().head();
      const late = collect(store(), start);
      await late.until(() => lastOf(late.positions) >= end);
      await late.subscription.close();
      assert.deepEqual(
        late.events.map((event) => event.id),
        (await store().readAll(start, 5_000)).map((event) => event.id),
      );
      assert.ok(late.positions.length > 3);
    });

    test('is silent once it was closed', async () => {
      const live = collect(store(), await store().head());
      await live.subscription.close();
      const { length } = live.positions;
      await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(live.positions.length, length);
      await live.subscription.close();
    });

    test('stops at the first batch that could not be dealt with, and says why', async () => {
      let calls = 0;
      const subscription = store().subscribe({
        after: await store().head(),
        onEvents: async () => {
          calls += 1;
          throw new Error('poison');
        },
      });
      const ended = assert.rejects(subscription.closed, /poison/);
      await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      await ended;
      await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      assert.equal(calls, 1);
    });

    test('is closed without complaint while, and after, it breaks', async () => {
      const started = Promise.withResolvers<void>();
      const goOn = Promise.withResolvers<void>();
      const subscription = store().subscribe({
        after: await store().head(),
        onEvents: async () => {
          started.resolve();
          await goOn.promise;
          throw new Error('poison');
        },
      });
      const ended = assert.rejects(subscription.closed, /poison/);
      await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      await started.promise;
      const closing = subscription.close();
      goOn.resolve();
      await closing;
      await ended;
      await subscription.close();
    });

    test('beyond the end of the log is refused rather than waited for', async () => {
      const head = await store().head();
      const beyond = (head + 1_000_000n) as typeof head;
      const subscription = store().subscribe({ after: beyond, onEvents: () => assert.fail('called') });
      await assert.rejects(subscription.closed, { code: 'log-diverged' });
    });
  });
}

async function revisionOf(store: EventStore, stream: StreamName): Promise<number | 'none'> {
  const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
  return last?.revision ?? 'none';
}
