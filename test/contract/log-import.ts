/** Moving a log into an event store: what an import must keep unchanged on every adapter, and when it must fail. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { LOG_START } from '../../core/kernel/envelope.ts';
import { timestamp } from '../../core/kernel/ids.ts';
import { APPEND_SIZE_BYTES_MAX } from '../../core/kernel/limits.ts';
import { appendInOrder, type EventStore } from '../../core/ports/event-store.ts';
import { ImportError } from '../../core/use-cases/log-files/import-log.ts';
import { asNew, newEvent, newStream } from '../support/events.ts';
import { exportText, fillOddLog, importText } from '../support/log-files.ts';
import { createMemoryEventStore } from '../support/memory/event-store.ts';

/** Declares the suite; `open` returns a new, empty log for each test. */
export function logImportContract(adapter: string, open: (context: TestContext) => Promise<EventStore>): void {
  describe(`moving a log to ${adapter}`, () => {
    test('copies every event unchanged there and back, in the log’s order', async (context) => {
      const [source, target, back] = [createMemoryEventStore(), await open(context), createMemoryEventStore()];
      await fillOddLog(source, 1_300);
      const file = await exportText(source);
      const report = await importText(target, file);
      assert.equal(report.events, 1_300);
      assert.equal(report.found, 0);
      assert.equal(await exportText(target), file);
      await importText(back, await exportText(target));
      const [before, after] = await Promise.all([source.readAll(LOG_START, 2_000), back.readAll(LOG_START, 2_000)]);
      assert.deepEqual(after, before);
    });

    test('copies events of the largest size', async (context) => {
      const [source, target] = [createMemoryEventStore(), await open(context)];
      const stream = newStream();
      for (const [index, letter] of ['x', '€', '\u{1f600}'].entries()) {
        const room = APPEND_SIZE_BYTES_MAX - 1 - Buffer.byteLength(JSON.stringify([newEvent({ data: { s: '' } })]));
        const data = { s: letter.repeat(Math.floor(room / Buffer.byteLength(letter))) };
        await source.append({ stream, expected: index === 0 ? 'none' : index - 1, events: [newEvent({ data })] });
      }
      const file = await exportText(source);
      await importText(target, file);
      assert.equal(await exportText(target), file);
    });

    test('copies an empty log', async (context) => {
      const file = await exportText(createMemoryEventStore());
      const report = await importText(await open(context), file);
      assert.equal(report.events, 0);
    });

    test('continues an interrupted import, and continues with a later export of the same log', async (context) => {
      const [source, target] = [createMemoryEventStore(), await open(context)];
      await fillOddLog(source, 700);
      const file = await exportText(source);
      let batches = 0;
      const die = (): void => {
        batches += 1;
        if (batches === 1) throw new Error('killed');
      };
      await assert.rejects(importText(target, file, { onProgress: die }), /killed/);
      const resumed = await importText(target, file);
      assert.ok(resumed.found > 0 && resumed.found < 700, `${resumed.found} events were there`);
      assert.equal(await exportText(target), file);
      assert.equal((await importText(target, file)).found, 700);
      await source.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      const later = await exportText(source);
      assert.deepEqual([(await importText(target, later)).found, await exportText(target)], [700, later]);
      // The log now holds more than the earlier file.
      await assert.rejects(importText(target, file), ImportError);
      assert.equal(await exportText(target), later);
    });

    test('refuses a target log that holds other events, and leaves it unchanged', async (context) => {
      const [source, target] = [createMemoryEventStore(), await open(context)];
      await fillOddLog(source, 20);
      const [first] = await source.readAll(LOG_START, 1);
      assert.ok(first !== undefined);
      // The same stream, revision and id, but another time.
      const other = { ...asNew(first), occurredAt: timestamp('2026-11-21T10:00:00.001Z') };
      await target.append({ stream: first.stream, expected: 'none', events: [other] });
      const before = await exportText(target);
      let begun = false;
      const begin = async (): Promise<void> => void (begun = true);
      await assert.rejects(
        importText(target, await exportText(source), { begin }),
        /^LogFileError: Line 2: .*in its place/,
      );
      assert.equal(await exportText(target), before);
      assert.equal(begun, false);
    });

    test('fails if another process appended in between, and fails again when it is repeated', async (context) => {
      const [source, target] = [createMemoryEventStore(), await open(context)];
      await fillOddLog(source, 1_200);
      const file = await exportText(source);
      let written = false;
      const intrude = async (): Promise<void> => {
        if (!written) await target.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
        written = true;
      };
      await assert.rejects(importText(target, file, { onProgress: intrude }), /Somebody else wrote/);
      await assert.rejects(importText(target, file), /in its place/);
    });

    test('appends in the caller’s order, and appending the same again has no effect', async (context) => {
      const store = await open(context);
      const streams = [newStream(), newStream()];
      const requests = Array.from({ length: 300 }, (_, index) => ({
        stream: streams[index % 2] ?? newStream(),
        expected: index < 2 ? ('none' as const) : Math.floor(index / 2) - 1,
        events: [newEvent()],
      }));
      const results = await appendInOrder(store, requests);
      const ids = requests.flatMap(({ events }) => events.map(({ id }) => id));
      assert.deepEqual(
        (await store.readAll(LOG_START, 1_000)).map(({ id }) => id),
        ids,
      );
      assert.deepEqual(await appendInOrder(store, requests), results);
      const conflict = await appendInOrder(store, [{ stream: newStream(), expected: 3, events: [newEvent()] }]);
      assert.equal(conflict.at(-1)?.outcome, 'conflict');
    });
  });
}
