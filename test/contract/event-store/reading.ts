/** Reading streams, the whole log and its head. Part of the event store's contract. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { RecordedEvent } from '../../../core/kernel/envelope.ts';
import { type EventStore, readPlaces } from '../../../core/ports/event-store.ts';
import { newEvent, newStream } from '../../support/events.ts';

export function readingContract(store: () => EventStore): void {
  describe('reading', () => {
    test('returns a stream forwards and backwards, from a revision, up to a limit', async () => {
      const stream = newStream();
      for (let n = 0; n < 5; n += 1) {
        const expected = n === 0 ? 'none' : n - 1;
        await store().append({ stream, expected, events: [newEvent({ data: { n } })] });
      }
      const revisions = async (direction: 'forwards' | 'backwards', limit: number, from?: number) => {
        const read = await store().readStream(stream, { direction, limit, ...(from === undefined ? {} : { from }) });
        for (const event of read) assert.deepEqual([event.stream, event.data], [stream, { n: event.revision }]);
        return read.map((event) => event.revision);
      };
      assert.deepEqual(await revisions('forwards', 10), [0, 1, 2, 3, 4]);
      assert.deepEqual(await revisions('forwards', 2), [0, 1]);
      assert.deepEqual(await revisions('forwards', 2, 3), [3, 4]);
      assert.deepEqual(await revisions('forwards', 2, 5), []);
      assert.deepEqual(await revisions('backwards', 10), [4, 3, 2, 1, 0]);
      assert.deepEqual(await revisions('backwards', 1), [4]);
      assert.deepEqual(await revisions('backwards', 2, 2), [2, 1]);
      assert.deepEqual(await revisions('backwards', 2, 99), [4, 3]);
    });

    test('returns no events for a stream without events', async () => {
      assert.deepEqual(await store().readStream(newStream(), { direction: 'forwards', limit: 1 }), []);
      assert.deepEqual(await store().readStream(newStream(), { direction: 'backwards', limit: 1 }), []);
    });

    test('returns the events of all streams after a position in commit order', async () => {
      const before = await store().head();
      const streams = [newStream(), newStream('account'), newStream()];
      const ids: string[] = [];
      for (const stream of streams) {
        const event = newEvent();
        ids.push(event.id);
        await store().append({ stream, expected: 'none', events: [event] });
      }
      const all = await store().readAll(before, 1_000);
      assert.deepEqual(
        all.map((event) => event.id).filter((id) => ids.includes(id)),
        ids,
      );
      for (const [index, event] of all.entries()) {
        assert.ok(event.position > (all[index - 1]?.position ?? before));
      }
      const [first] = await store().readAll(before, 1);
      assert.deepEqual(first, all[0]);
      const last = all.at(-1);
      assert.ok(last !== undefined);
      assert.deepEqual(await store().readAll(last.position, 10), []);
    });

    test('returns the events at places, in their order, and fails for a place that holds another event', async () => {
      const [one, two] = [newStream(), newStream('account')];
      for (const [stream, count] of [
        [one, 60],
        [two, 2],
      ] as const) {
        const events = Array.from({ length: count }, (_, n) => newEvent({ data: { n } }));
        await store().append({ stream, expected: 'none', events });
      }
      const eventsOf = async (stream: typeof one) => store().readStream(stream, { direction: 'forwards', limit: 100 });
      const [ones, twos] = [await eventsOf(one), await eventsOf(two)];
      const wanted = [ones[59], twos[1], ones[0], ones[2], twos[0]].filter((event) => event !== undefined);
      assert.deepEqual(await readPlaces(store(), wanted), wanted);
      assert.deepEqual(await readPlaces(store(), []), []);
      const [first, second] = ones;
      assert.ok(first !== undefined && second !== undefined);
      const astray = readPlaces(store(), [{ ...first, position: second.position }]);
      await assert.rejects(astray, { code: 'log-diverged' });
    });

    test('never ends a page of a stream inside an append, in either direction', async () => {
      const stream = newStream();
      // Revisions 0 | 1 2 3 | 4 5 | 6
      for (const [first, count] of [
        [0, 1],
        [1, 3],
        [4, 2],
        [6, 1],
      ] as const) {
        const expected = first === 0 ? 'none' : first - 1;
        await store().append({ stream, expected, events: Array.from({ length: count }, () => newEvent()) });
      }
      const revisions = async (direction: 'forwards' | 'backwards', from: number, limit: number) =>
        (await store().readStream(stream, { direction, from, limit })).map(({ revision }) => revision);
      assert.deepEqual(await revisions('forwards', 0, 1), [0]);
      assert.deepEqual(await revisions('forwards', 0, 2), [0, 1, 2, 3]);
      assert.deepEqual(await revisions('forwards', 0, 5), [0, 1, 2, 3, 4, 5]);
      assert.deepEqual(await revisions('forwards', 2, 1), [2, 3], 'starts inside one, ends at its end');
      assert.deepEqual(await revisions('forwards', 3, 1), [3]);
      assert.deepEqual(await revisions('forwards', 6, 1), [6]);
      assert.deepEqual(await revisions('backwards', 6, 2), [6, 5, 4]);
      assert.deepEqual(await revisions('backwards', 5, 1), [5, 4]);
      assert.deepEqual(await revisions('backwards', 2, 1), [2, 1], 'starts inside one, ends at its start');
      assert.deepEqual(await revisions('backwards', 1, 1), [1]);
      assert.deepEqual(await revisions('backwards', 4, 3), [4, 3, 2, 1]);
    });

    test('never ends a page of the whole log inside an append', async () => {
      const before = await store().head();
      const ends = new Map<string, number>();
      for (let n = 0; n < 12; n += 1) {
        const events = Array.from({ length: 1 + (n % 4) }, () => newEvent());
        await store().append({ stream: newStream(), expected: 'none', events });
        for (const [index, { id }] of events.entries()) ends.set(id, events.length - 1 - index);
      }
      const all = (await store().readAll(before, 1_000)).map(({ id }) => id);
      for (const limit of [1, 2, 3, 5, 7]) {
        const read: string[] = [];
        for (let after = before; ; ) {
          const page = await store().readAll(after, limit);
          const last = page.at(-1);
          if (last === undefined) break;
          assert.ok(page.length >= limit || ids(page).at(-1) === all.at(-1), 'only the last page is shorter');
          assert.equal(ends.get(last.id) ?? 0, 0, `a page of ${limit} ends inside an append`);
          read.push(...ids(page));
          after = last.position;
        }
        assert.deepEqual(read, all);
      }
    });

    test('returns with each event its place in its append', async () => {
      const before = await store().head();
      const [stream, other] = [newStream(), newStream()];
      await store().append({ stream, expected: 'none', events: [newEvent(), newEvent(), newEvent()] });
      await store().append({ stream, expected: 2, events: [newEvent()] });
      await store().append({ stream: other, expected: 'none', events: [newEvent(), newEvent()] });
      const places = (events: readonly RecordedEvent[]): unknown[] =>
        events.map(({ appendIndex, appendCount }) => [appendIndex, appendCount]);
      const [ofThree, alone] = [
        [
          [0, 3],
          [1, 3],
          [2, 3],
        ],
        [[0, 1]],
      ];
      const forwards = await store().readStream(stream, { direction: 'forwards', limit: 10 });
      assert.deepEqual(places(forwards), [...ofThree, ...alone]);
      const backwards = await store().readStream(stream, { direction: 'backwards', limit: 10 });
      assert.deepEqual(places(backwards), [...alone, ...ofThree.toReversed()]);
      const all = (await store().readAll(before, 1_000)).filter((event) => [stream, other].includes(event.stream));
      assert.deepEqual(places(all), [...ofThree, ...alone, [0, 2], [1, 2]]);
    });

    test('returns a head that covers every append acknowledged before', async () => {
      const appends = Array.from({ length: 30 }, async () => {
        const result = await store().append({ stream: newStream(), expected: 'none', events: [newEvent()] });
        assert.ok(result.outcome === 'appended');
        const heads = await Promise.all([store().head(), store().head()]);
        for (const head of heads) assert.ok(head >= result.position, `${head} < ${result.position}`);
      });
      await Promise.all(appends);
    });
  });
}

function ids(events: readonly RecordedEvent[]): readonly string[] {
  return events.map(({ id }) => id);
}
