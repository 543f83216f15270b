/** Reads at the end of the log, shared by the subscriptions that have read up to there. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Anchor, Window } from '../../../adapters/postgres/log-reader.ts';
import { shareTail } from '../../../adapters/postgres/shared-tail.ts';
import { LOG_START, type LogPosition, type RecordedEvent } from '../../../core/kernel/envelope.ts';
import { lastRecordOf } from '../../../core/runtime/read-mark.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';

/** A log that records the position and the filter of each read. */
function recordingLog() {
  const store = createMemoryEventStore();
  const reads: (readonly [LogPosition, readonly string[] | null])[] = [];
  const readWindow = async (from: Anchor, categories: readonly string[] | null): Promise<Window> => {
    reads.push([from.position, categories]);
    const all = await store.readAll(from.position, 100);
    const events = all.filter(({ stream }) => categories === null || categories.includes(stream.split('-')[0] ?? ''));
    const last = all.at(-1);
    const end = last === undefined ? from : { position: last.position, id: last.id };
    return { events, end, lastRecord: lastRecordOf(all), reachedEnd: true, isOwn: false, diverged: false };
  };
  const append = () => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
  return { reads, append, readWindow: shareTail(readWindow, { behind: () => null }) };
}

const START: Anchor = { position: LOG_START, id: null };
const streams = (window: Window): readonly string[] => window.events.map(({ stream }: RecordedEvent) => stream);

describe('A read at the end of the log', () => {
  test('serves all subscriptions that wait there, each with its own filter', async () => {
    const { reads, append, readWindow } = recordingLog();
    await append();
    const { end } = await readWindow(START, null);
    await append();
    reads.length = 0;
    const [all, some, none] = await Promise.all([
      readWindow(end, null),
      readWindow(end, ['repository']),
      readWindow(end, ['account']),
    ]);
    assert.deepEqual([streams(all).length, streams(none).length], [1, 0]);
    assert.deepEqual(streams(some), streams(all));
    assert.deepEqual([some.end, none.end], [all.end, all.end]);
    assert.deepEqual(reads, [[end.position, null]]);
  });

  test('is never older than the call', async () => {
    const { append, readWindow } = recordingLog();
    await append();
    const { end } = await readWindow(START, null);
    const early = readWindow(end, null);
    await append();
    const late = readWindow(end, null);
    assert.equal((await late).events.length, 1);
    await early;
  });

  test('is not shared with a subscription that is further back', async () => {
    const { reads, append, readWindow } = recordingLog();
    await append();
    const { end } = await readWindow(START, null);
    await append();
    await readWindow(end, null);
    reads.length = 0;
    await readWindow(end, ['repository']);
    assert.deepEqual(reads, [[end.position, ['repository']]]);
  });
});
