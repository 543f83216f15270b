/** Files of every released version can always be read; exports have the newest version. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START, type RecordedEvent } from '../../../../core/kernel/envelope.ts';
import { asNew } from '../../../support/events.ts';
import {
  appendGolden,
  GOLDEN_APPENDS,
  GOLDEN_PLACES,
  GOLDEN_PLACES_FIRST_FORM,
  goldenText,
} from '../../../support/golden-log.ts';
import { exportText, importText } from '../../../support/log-files.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';

const VERSION_1 = goldenText('log-file/version-1.jsonl');
const VERSION_2 = goldenText('log-file/version-2.jsonl');
const EVENTS = GOLDEN_APPENDS.flatMap(({ events }) => events);

const places = (events: readonly RecordedEvent[]): unknown =>
  events.map(({ isRecord, appendIndex, appendCount }) => [isRecord, appendIndex, appendCount]);

describe('An exported log', () => {
  test('is a file of version 2, byte for byte', async () => {
    const store = createMemoryEventStore();
    await appendGolden(store);
    assert.equal(await exportText(store), VERSION_2);
  });

  for (const [version, file, expected] of [
    [1, VERSION_1, GOLDEN_PLACES_FIRST_FORM],
    [2, VERSION_2, GOLDEN_PLACES],
  ] as const) {
    test(`of version ${version} is imported with its own digest, also into a log that holds it already`, async () => {
      const store = createMemoryEventStore();
      const report = await importText(store, file);
      assert.deepEqual([report.events, report.found], [6, 0]);
      assert.ok(file.trimEnd().endsWith(`{"digest":"${report.digest}","events":6}`));
      const read = await store.readAll(LOG_START, 100);
      assert.deepEqual(read.map(asNew), EVENTS);
      assert.deepEqual(places(read), expected);
      assert.equal((await importText(store, file)).found, 6);
    });
  }

  test('that was imported from version 1 is recognised by a later import of the same file', async () => {
    const [source, target] = [createMemoryEventStore(), createMemoryEventStore()];
    await importText(source, VERSION_1);
    await importText(target, VERSION_1);
    const later = await exportText(source);
    assert.match(later, /^\{"format":"strata-event-log","version":2\}\n/);
    assert.equal((await importText(target, later)).found, 6);
  });
});
