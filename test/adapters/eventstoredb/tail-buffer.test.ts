/** What waits between the end of the log and those who read there. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Passed } from '../../../adapters/eventstoredb/passed.ts';
import { createTailWindow, type TailReader } from '../../../adapters/eventstoredb/tail-window.ts';
import { LOG_START, type LogPosition } from '../../../core/kernel/envelope.ts';

const at = (position: number): LogPosition => BigInt(position) as LogPosition;
const passed = (position: number, sizeBytes = 1): Passed => ({ position: at(position), event: null, sizeBytes });

/** Takes all there is, as a subscription does, and answers the positions; null at the end for a lost place. */
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

describe('the window at the end of the log', () => {
  test('gives each reader everything behind its place, once and in order, a batch at a time', () => {
    const window = createTailWindow(LOG_START);
    const [fast, slow] = [window.enter(LOG_START), window.enter(LOG_START)];
    for (const position of upTo(1_500)) {
      window.put(passed(position));
      if (position === 700) assert.deepEqual(drain(fast, LOG_START), upTo(700));
    }
    assert.deepEqual(drain(fast, at(700)), upTo(1_500, 701));
    assert.equal(slow.take(LOG_START)?.length, 1_000);
    assert.deepEqual(drain(slow, at(1_000)), upTo(1_500, 1_001));
    assert.deepEqual(drain(fast, at(1_500)), []);
  });

  test('says how far back it goes, and skips what one who read further has seen', () => {
    const window = createTailWindow(at(10));
    const first = window.enter(at(10));
    for (const position of [11, 12, 13]) window.put(passed(position));
    assert.equal(window.enter(at(5)).from, at(10));
    assert.deepEqual(drain(window.enter(at(12)), at(12)), [13]);
    const further = window.enter(at(15));
    for (const position of [14, 15, 16]) window.put(passed(position));
    assert.deepEqual(drain(further, at(15)), [16]);
    assert.deepEqual(drain(first, at(10)), upTo(16, 11));
  });

  test('holds what somebody has yet to take, and nothing else', () => {
    const window = createTailWindow(LOG_START);
    const [fast, slow] = [window.enter(LOG_START), window.enter(LOG_START)];
    for (const position of upTo(5)) window.put(passed(position));
    drain(fast, LOG_START);
    const late = window.enter(LOG_START);
    assert.equal(late.from, LOG_START);
    late.leave();
    slow.leave();
    assert.equal(window.enter(LOG_START).from, at(5));
  });

  for (const [what, count, sizeBytes] of [
    ['events', 10_000, 1],
    ['bytes', 16, 1024 * 1024],
  ] as const) {
    test(`at its bound of ${what} costs the slowest its place, who keeps what came, and nobody else`, () => {
      const window = createTailWindow(LOG_START);
      const [fast, slow] = [window.enter(LOG_START), window.enter(LOG_START)];
      for (const position of upTo(count)) window.put(passed(position, sizeBytes));
      assert.deepEqual(drain(fast, LOG_START), upTo(count));
      assert.equal(window.readers(), 2);
      window.put(passed(count + 1, sizeBytes));
      assert.equal(window.readers(), 1);
      // As if nobody had been slow: what was held for it alone is gone.
      assert.equal(window.enter(LOG_START).from, at(count));
      window.put(passed(count + 2, sizeBytes));
      assert.deepEqual(drain(slow, LOG_START), [...upTo(count + 1), null]);
      assert.deepEqual(drain(fast, at(count)), [count + 1, count + 2]);
    });
  }

  test('gives what came before a failure first', async () => {
    const window = createTailWindow(LOG_START);
    const reader = window.enter(LOG_START);
    window.put(passed(1));
    window.fail(new Error('broken'));
    await reader.arrived();
    assert.equal(reader.take(LOG_START)?.length, 1);
    assert.throws(() => reader.take(at(1)), /broken/);
  });
});
