/** The buffer of events between the end of the log and the subscriptions that read there. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LogEntry } from '../../../adapters/eventstoredb/log-entries.ts';
import { TailBuffer, type TailReader } from '../../../adapters/eventstoredb/tail-buffer.ts';
import { LOG_START, type LogPosition } from '../../../core/kernel/envelope.ts';
import { placedEvents } from '../../support/events.ts';

const at = (position: number): LogPosition => BigInt(position) as LogPosition;
const entryAt = (position: number, sizeBytes = 1): LogEntry => ({ position: at(position), event: null, sizeBytes });

/** Takes all there is, as a subscription does, and returns the positions, then null if the reader lost its place. */
function drain(reader: TailReader, from: LogPosition): (number | null)[] {
  const positions: (number | null)[] = [];
  let reached = from;
  for (;;) {
    const taken = reader.take(reached);
    if (taken === null) return [...positions, null];
    if (taken.length === 0) return positions;
    positions.push(...taken.map(({ position }) => Number(position)));
    reached = taken.at(-1)?.position ?? reached;
  }
}

const upTo = (end: number, start = 1): number[] => Array.from({ length: end - start + 1 }, (_, n) => start + n);

describe('the buffer at the end of the log', () => {
  test('returns to each reader everything behind its place, once and in order, a batch at a time', () => {
    const buffer = new TailBuffer(LOG_START);
    const [fast, slow] = [buffer.join(LOG_START), buffer.join(LOG_START)];
    for (const position of upTo(1_500)) {
      buffer.put([entryAt(position)]);
      if (position === 700) assert.deepEqual(drain(fast, LOG_START), upTo(700));
    }
    assert.deepEqual(drain(fast, at(700)), upTo(1_500, 701));
    assert.equal(slow.take(LOG_START)?.length, 1_000);
    assert.deepEqual(drain(slow, at(1_000)), upTo(1_500, 1_001));
    assert.deepEqual(drain(fast, at(1_500)), []);
  });

  test('returns whole appends, even to a reader that lost its place', () => {
    const events = placedEvents(999, 3, 2);
    const held = events.map((event): LogEntry => ({ position: event.position, event, sizeBytes: 1 }));
    const buffer = new TailBuffer(LOG_START);
    const [reader, slow] = [buffer.join(LOG_START), buffer.join(LOG_START)];
    buffer.put(held);
    assert.equal(reader.take(LOG_START)?.length, 1_002);
    assert.deepEqual(drain(reader, at(1_002)), [1_003, 1_004]);
    for (const position of upTo(11_500, 1_005)) buffer.put([entryAt(position)]);
    assert.equal(slow.take(LOG_START)?.length, 1_002);
  });

  test('reports how far back it goes, and skips what a reader has read elsewhere', () => {
    const buffer = new TailBuffer(at(10));
    const first = buffer.join(at(10));
    for (const position of [11, 12, 13]) buffer.put([entryAt(position)]);
    assert.equal(buffer.join(at(5)).from, at(10));
    assert.deepEqual(drain(buffer.join(at(12)), at(12)), [13]);
    const further = buffer.join(at(15));
    for (const position of [14, 15, 16]) buffer.put([entryAt(position)]);
    assert.deepEqual(drain(further, at(15)), [16]);
    assert.deepEqual(drain(first, at(10)), upTo(16, 11));
  });

  test('holds only what a reader has yet to take', () => {
    const buffer = new TailBuffer(LOG_START);
    const [fast, slow] = [buffer.join(LOG_START), buffer.join(LOG_START)];
    for (const position of upTo(5)) buffer.put([entryAt(position)]);
    drain(fast, LOG_START);
    const late = buffer.join(LOG_START);
    assert.equal(late.from, LOG_START);
    late.leave();
    slow.leave();
    assert.equal(buffer.join(LOG_START).from, at(5));
  });

  for (const [what, count, sizeBytes] of [
    ['events', 10_000, 1],
    ['bytes', 16, 1024 * 1024],
  ] as const) {
    test(`at its bound of ${what} drops the slowest reader only, which still gets what had arrived`, () => {
      const buffer = new TailBuffer(LOG_START);
      const [fast, slow] = [buffer.join(LOG_START), buffer.join(LOG_START)];
      for (const position of upTo(count)) buffer.put([entryAt(position, sizeBytes)]);
      assert.deepEqual(drain(fast, LOG_START), upTo(count));
      assert.equal(buffer.readers, 2);
      buffer.put([entryAt(count + 1, sizeBytes)]);
      assert.equal(buffer.readers, 1);
      // The buffer dropped what it held for the slow reader alone.
      assert.equal(buffer.join(LOG_START).from, at(count));
      buffer.put([entryAt(count + 2, sizeBytes)]);
      assert.deepEqual(drain(slow, LOG_START), [...upTo(count + 1), null]);
      assert.deepEqual(drain(fast, at(count)), [count + 1, count + 2]);
    });
  }

  test('returns what arrived before a failure first', async () => {
    const buffer = new TailBuffer(LOG_START);
    const reader = buffer.join(LOG_START);
    buffer.put([entryAt(1)]);
    buffer.fail(new Error('broken'));
    await reader.changed();
    assert.equal(reader.take(LOG_START)?.length, 1);
    assert.throws(() => reader.take(at(1)), /broken/);
  });
});
