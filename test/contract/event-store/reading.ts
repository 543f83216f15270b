/** Reading streams, the whole log and its head. Part of the event store's contract. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { newEvent, newStream } from '../../support/events.ts';

export function readingContract(store: () => EventStore): void {
  describe('reading', () => {
    test('a stream forwards and backwards, from a revision, up to a limit', async () => {
      const stream = newStream();
      const events = Array.from({ length: 5 }, (_, n) => newEvent({ data: { n } }));
      await store().append({ stream, expected: 'none', events });
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

    test('a stream without events gives none', async () => {
      assert.deepEqual(await store().readStream(newStream(), { direction: 'forwards', limit: 1 }), []);
      assert.deepEqual(await store().readStream(newStream(), { direction: 'backwards', limit: 1 }), []);
    });

    test('the whole log after a position gives every stream in commit order', async () => {
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

    test('the head, read after an append, is never before it', async () => {
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
