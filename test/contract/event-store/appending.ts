/** How appends succeed or conflict: expected revisions, guards, retries. Part of the event store's contract. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { asNew, newEvent, newStream } from '../../support/events.ts';

export function appendingContract(store: () => EventStore): void {
  describe('appending', () => {
    test('numbers the events of a stream from 0 and returns the last revision', async () => {
      const stream = newStream();
      const first = await store().append({ stream, expected: 'none', events: [newEvent(), newEvent()] });
      assert.ok(first.outcome === 'appended');
      assert.equal(first.revision, 1);
      const second = await store().append({ stream, expected: 1, events: [newEvent()] });
      assert.ok(second.outcome === 'appended');
      assert.equal(second.revision, 2);
      assert.ok(second.position > first.position);
    });

    test('stores an event so that a read returns it unchanged', async () => {
      const stream = newStream();
      const event = newEvent({
        version: 7,
        actor: { kind: 'token', id: 'Größe "quoted" \\ \u{1f600}' },
        sourceAddressRef: 'ab'.repeat(32),
        causationId: newEvent().id,
        data: { nul: '\0', nested: [{ b: null, a: true }, [], {}], n: Number.MAX_SAFE_INTEGER, '\u{e000}': "'$1'" },
      });
      const orphan = newEvent({ accountId: null, isRecord: false, data: {} });
      await store().append({ stream, expected: 'none', events: [event, orphan] });
      const read = await store().readStream(stream, { direction: 'forwards', limit: 10 });
      assert.deepEqual(read.map(asNew), [event, orphan]);
    });

    test('conflicts at any expected revision but the actual one, and returns the actual one', async () => {
      const stream = newStream();
      const event = newEvent();
      const early = await store().append({ stream, expected: 0, events: [event] });
      assert.deepEqual(early, { outcome: 'conflict', stream, actual: 'none' });
      await store().append({ stream, expected: 'none', events: [event] });
      for (const expected of ['none', 1, 5] as const) {
        const late = await store().append({ stream, expected, events: [newEvent()] });
        assert.deepEqual(late, { outcome: 'conflict', stream, actual: 0 });
      }
      assert.equal((await store().readStream(stream, { direction: 'forwards', limit: 10 })).length, 1);
    });

    test('lets exactly one of many concurrent appends succeed', async () => {
      const stream = newStream();
      const racing = Array.from({ length: 20 }, () =>
        store().append({ stream, expected: 'none', events: [newEvent()] }),
      );
      const results = await Promise.all(racing);
      assert.equal(results.filter((result) => result.outcome === 'appended').length, 1);
      assert.ok(results.every((result) => result.outcome === 'appended' || result.actual === 0));
    });

    test('does not let an append that conflicts fail concurrent ones', async () => {
      const taken = newStream();
      await store().append({ stream: taken, expected: 'none', events: [newEvent()] });
      const streams = Array.from({ length: 10 }, () => newStream());
      const results = await Promise.all(
        [...streams.slice(0, 5), taken, ...streams.slice(5)].map((stream) =>
          store().append({ stream, expected: 'none', events: [newEvent()] }),
        ),
      );
      assert.deepEqual(
        results.map((result) => result.outcome),
        [...Array(5).fill('appended'), 'conflict', ...Array(5).fill('appended')],
      );
    });

    test('appends all events of a request, or none of them', async () => {
      const stream = newStream();
      await store().append({ stream, expected: 'none', events: [newEvent()] });
      const result = await store().append({ stream, expected: 3, events: [newEvent(), newEvent(), newEvent()] });
      assert.equal(result.outcome, 'conflict');
      assert.equal((await store().readStream(stream, { direction: 'forwards', limit: 10 })).length, 1);
    });
  });

  describe('guards', () => {
    test('let an append succeed while the guarded streams are at the expected revisions', async () => {
      const [token, absent, stream] = [newStream('accessToken'), newStream('account'), newStream()];
      await store().append({ stream: token, expected: 'none', events: [newEvent(), newEvent()] });
      const guards = [
        { stream: token, revision: 1 },
        { stream: absent, revision: 'none' },
      ] as const;
      const result = await store().append({ stream, expected: 'none', events: [newEvent()], guards });
      assert.equal(result.outcome, 'appended');
    });

    test('make it conflict when one of those streams is at another revision, and name that stream', async () => {
      const [token, stream] = [newStream('accessToken'), newStream()];
      await store().append({ stream: token, expected: 'none', events: [newEvent()] });
      const revoked = await store().append({ stream: token, expected: 0, events: [newEvent()] });
      assert.equal(revoked.outcome, 'appended');
      const guards = [{ stream: token, revision: 0 }];
      const late = await store().append({ stream, expected: 'none', events: [newEvent()], guards });
      assert.deepEqual(late, { outcome: 'conflict', stream: token, actual: 1 });
      const withoutEvents = [{ stream: newStream('accessToken'), revision: 0 }];
      const early = await store().append({ stream, expected: 'none', events: [newEvent()], guards: withoutEvents });
      assert.deepEqual(early, { outcome: 'conflict', stream: withoutEvents[0]?.stream, actual: 'none' });
      assert.deepEqual(await store().readStream(stream, { direction: 'forwards', limit: 1 }), []);
    });
  });

  describe('a deadline', () => {
    test('that has passed lets the append store nothing and say so, and lets concurrent ones succeed', async () => {
      const [stream, other] = [newStream(), newStream()];
      const events = [newEvent()];
      const late = store().append({ stream, expected: 'none', events, isTooLate: () => true });
      const inTime = store().append({ stream: other, expected: 'none', events: [newEvent()], isTooLate: () => false });
      await assert.rejects(late, { name: 'EventStoreError', code: 'append-too-late' });
      assert.equal((await inTime).outcome, 'appended');
      assert.deepEqual(await store().readStream(stream, { direction: 'forwards', limit: 1 }), []);
      const again = await store().append({ stream, expected: 'none', events });
      assert.partialDeepStrictEqual(again, { outcome: 'appended', revision: 0 });
    });
  });

  describe('retrying', () => {
    test('with the same ids and the same expected revision returns the first result', async () => {
      const stream = newStream();
      const request = { stream, expected: 'none', events: [newEvent(), newEvent()] } as const;
      const first = await store().append(request);
      assert.equal(first.outcome, 'appended');
      assert.deepEqual(await store().append(request), first);
      await store().append({ stream, expected: 1, events: [newEvent()] });
      assert.deepEqual(await store().append(request), first, 'also after the stream moved on');
      assert.equal((await store().readStream(stream, { direction: 'forwards', limit: 10 })).length, 3);
    });

    test('returns the first result also if a guarded stream has changed since the commit', async () => {
      const [token, stream] = [newStream('accessToken'), newStream()];
      await store().append({ stream: token, expected: 'none', events: [newEvent()] });
      const guards = [{ stream: token, revision: 0 }];
      const request = { stream, expected: 'none', events: [newEvent()], guards } as const;
      const first = await store().append(request);
      await store().append({ stream: token, expected: 0, events: [newEvent()] });
      assert.deepEqual(await store().append(request), first);
    });

    test('concurrently with the first attempt appends once', async () => {
      const stream = newStream();
      const request = { stream, expected: 'none', events: [newEvent(), newEvent()] } as const;
      const results = await Promise.all(Array.from({ length: 5 }, () => store().append(request)));
      assert.equal(results[0]?.outcome, 'appended');
      for (const result of results) assert.deepEqual(result, results[0]);
      assert.equal((await store().readStream(stream, { direction: 'forwards', limit: 10 })).length, 2);
    });

    test('with the same ids and other content conflicts', async () => {
      const stream = newStream();
      const event = newEvent();
      const second = newEvent();
      await store().append({ stream, expected: 'none', events: [event, second] });
      const others = [
        [{ ...event, data: { note: 'other' } }, second],
        [{ ...event, type: 'OtherThingHappened' }, second],
        [{ ...event, actor: { kind: 'admin', id: 'test' } } as const, second],
        [{ ...event, isRecord: false }, second],
        [event, second, newEvent()],
        [second, event],
      ];
      for (const [index, events] of others.entries()) {
        const result = await store().append({ stream, expected: 'none', events });
        assert.deepEqual(result, { outcome: 'conflict', stream, actual: 1 }, `variant ${index}`);
      }
    });
  });
}
