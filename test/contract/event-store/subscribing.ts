/** How subscriptions deliver: each event once, in commit order. Part of the event store's contract. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import type { LogPosition, RecordedEvent, StreamName } from '../../../core/kernel/envelope.ts';
import type { EventStore, Subscription } from '../../../core/ports/event-store.ts';
import type { RecordPlace } from '../../../core/ports/read-mark.ts';
import { collect, lastOf, newEvent, newStream } from '../../support/events.ts';

const APPENDERS = 64;
const APPENDS_EACH = 20;

export function subscribingContract(store: () => EventStore): void {
  describe('a subscription', () => {
    test('delivers each event exactly once and in order while 64 appenders write', { timeout: 120_000 }, async () => {
      const start = await store().head();
      const live = collect(store(), start);
      const appended = new Map<string, bigint>();
      const writers = Array.from({ length: APPENDERS }, async (_, writer) => {
        const stream = newStream();
        for (let n = 0; n < APPENDS_EACH; n++) {
          // Requests of one event and of several, so that batches hold both.
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
        const ownEvents = events.filter((event) => appended.has(event.id));
        assert.equal(ownEvents.length, appended.size);
        assert.equal(new Set(ownEvents.map((event) => event.id)).size, appended.size);
        const nextRevision = new Map<StreamName, number>();
        for (const [index, event] of events.entries()) {
          if (index > 0) assert.ok(event.position > (events[index - 1]?.position ?? 0n));
          const position = appended.get(event.id);
          if (position === undefined) continue;
          if (position !== 0n) assert.equal(event.position, position, 'the position that the append returned');
          assert.equal(event.revision, nextRevision.get(event.stream) ?? 0);
          nextRevision.set(event.stream, event.revision + 1);
        }
      }
    });

    test('delivers each event after its start once, also when it starts during appends or is slow', {
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
      const started: { after: LogPosition; seen: LogPosition[]; subscription: Subscription }[] = [];
      for (let n = 0; n < 12; n += 1) {
        const after = n % 3 === 0 ? start : await store().head();
        const seen: LogPosition[] = [];
        const onEvents = async (events: readonly RecordedEvent[]): Promise<void> => {
          seen.push(...events.map(({ position }) => position));
          if (n % 4 === 3) await sleep(20);
        };
        started.push({ after, seen, subscription: store().subscribe({ after, onEvents }) });
        await sleep(10);
      }
      writing = false;
      await Promise.all(writers);
      const all = (await store().readAll(start, 100_000)).map(({ position }) => position);
      for (const { after, seen, subscription } of started) {
        while (lastOf(seen) < lastOf(all)) await sleep(5);
        await subscription.close();
        assert.deepEqual(
          seen,
          all.filter((position) => position > after),
        );
      }
    });

    test('to some categories leaves the other events out, and its position still moves over them', async () => {
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

    for (const [filter, categories] of [
      ['every category', undefined],
      ['some categories', ['account']],
    ] as const) {
      test(`to ${filter} receives whole appends, live and from the past`, { timeout: 60_000 }, async () => {
        const start = await store().head();
        const live = collect(store(), start, categories);
        const counts = new Map<StreamName, number>();
        for (let n = 0; n < 40; n += 1) {
          const stream = newStream(n % 3 === 0 ? 'repository' : 'account');
          const events = Array.from({ length: 1 + (n % 4) }, () => newEvent());
          await store().append({ stream, expected: 'none', events });
          counts.set(stream, events.length);
        }
        // Two of these appends do not fit into one batch.
        for (let n = 0; n < 3; n += 1) {
          const stream = newStream('account');
          await store().append({ stream, expected: 'none', events: Array.from({ length: 700 }, () => newEvent()) });
          counts.set(stream, 700);
        }
        const end = await store().head();
        const late = collect(store(), start, categories);
        for (const collected of [live, late]) {
          await collected.until(() => lastOf(collected.positions) >= end);
          await collected.subscription.close();
          const seen = new Set<StreamName>();
          for (const batch of collected.batches) {
            const inBatch = Map.groupBy(batch, ({ stream }) => stream);
            for (const [stream, events] of inBatch) {
              const count = counts.get(stream);
              if (count === undefined) continue;
              assert.equal(events.length, count, `${events.length} of an append's ${count} events in one batch`);
              seen.add(stream);
            }
          }
          const wanted = [...counts.keys()].filter(
            (stream) => categories === undefined || stream.startsWith('account'),
          );
          assert.equal(seen.size, wanted.length);
        }
      });
    }

    test('receives whole appends also if they hold more data than one read returns', { timeout: 60_000 }, async () => {
      const start = await store().head();
      const note = 'x'.repeat(240_000);
      for (let n = 0; n < 20; n += 1) {
        const events = Array.from({ length: 4 }, () => newEvent({ data: { note } }));
        await store().append({ stream: newStream(n % 5 === 0 ? 'account' : 'repository'), expected: 'none', events });
      }
      const end = await store().head();
      for (const categories of [undefined, ['repository']]) {
        const late = collect(store(), start, categories);
        await late.until(() => lastOf(late.positions) >= end);
        await late.subscription.close();
        for (const batch of late.batches) assert.equal(batch.length % 4, 0, `a batch of ${batch.length} events`);
        assert.equal(late.events.length, categories === undefined ? 80 : 64);
      }
    });

    for (const [filter, categories] of [
      ['every category', undefined],
      ['some categories', ['webhookDelivery']],
    ] as const) {
      test(`to ${filter} receives the place of the last record event passed`, async () => {
        const start = await store().head();
        const expected: (readonly [LogPosition, string | null])[] = [];
        let last: string | null = null;
        for (let n = 0; n < 30; n += 1) {
          const isRecord = n % 3 === 1;
          const stream = newStream(isRecord ? 'repository' : 'webhookDelivery');
          // An append with a record event also ends with an operational one.
          const events = [newEvent({ isRecord }), newEvent({ isRecord: false })];
          const result = await store().append({ stream, expected: 'none', events });
          if (isRecord) last = events[0]?.id ?? null;
          if (result.outcome === 'appended') expected.push([result.position, last]);
        }
        const end = await store().head();
        const collected = collect(store(), start, categories);
        await collected.until(() => lastOf(collected.positions) >= end);
        await collected.subscription.close();
        let known: RecordPlace | null = null;
        for (const [index, passed] of collected.lastRecords.entries()) {
          known = passed ?? known;
          const position = collected.positions[index + 1] ?? start;
          const before = expected.findLast(([at]) => at <= position);
          assert.equal(known?.eventId ?? null, before?.[1] ?? null);
        }
        assert.ok(known !== null);
        const [found] = await store().readStream(known.stream, {
          direction: 'forwards',
          from: known.revision,
          limit: 1,
        });
        assert.deepEqual([found?.id, found?.position], [known.eventId, known.position]);
      });
    }

    test('delivers the next batch only after the batch before was handled', async () => {
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
        const result = await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
        if (result.outcome === 'appended') subscription.pull(result.position);
      }
      while (seen < 20) await new Promise((resolve) => setTimeout(resolve, 5));
      await subscription.close();
      await subscription.closed;
    });

    test('delivers more events than one batch holds', async () => {
      const start = await store().head();
      for (let n = 0; n < 4; n++) {
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
      assert.ok(late.positions.length > 2);
    });

    test('delivers nothing after it was closed', async () => {
      const live = collect(store(), await store().head());
      await live.subscription.close();
      const { length } = live.positions;
      await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(live.positions.length, length);
      await live.subscription.close();
    });

    test('stops at the first batch whose handler fails, and reports the error', async () => {
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

    test('can be closed without an error while its handler fails, and afterwards', async () => {
      const started = Promise.withResolvers<void>();
      const fail = Promise.withResolvers<void>();
      const subscription = store().subscribe({
        after: await store().head(),
        onEvents: async () => {
          started.resolve();
          await fail.promise;
          throw new Error('poison');
        },
      });
      const ended = assert.rejects(subscription.closed, /poison/);
      await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      await started.promise;
      const closing = subscription.close();
      fail.resolve();
      await closing;
      await ended;
      await subscription.close();
    });

    test('that starts beyond the end of the log is refused instead of waiting', async () => {
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
