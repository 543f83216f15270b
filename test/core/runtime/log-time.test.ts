/** What "as of T" selects of an account's log, whose streams were written by nodes with different clocks. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LogPosition, RecordedEvent } from '../../../core/kernel/envelope.ts';
import { timestamp } from '../../../core/kernel/ids.ts';
import { isEntryOf, placeAfter, placeAsOf } from '../../../core/runtime/log-time.ts';
import { newAccount, newEvent, newStream, placedEvents } from '../../support/events.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';

const at = (seconds: number) => timestamp(`2026-11-21T10:00:${String(seconds).padStart(2, '0')}.000Z`);

/** Returns entries with these seconds as their times, at positions from 1. */
const entriesAt = (...seconds: readonly number[]): readonly RecordedEvent[] =>
  placedEvents(...seconds.map(() => 1)).map((event, index) => ({ ...event, occurredAt: at(seconds[index] ?? 0) }));

describe('The log of an account as of a moment', () => {
  test('is always a prefix of it, even if the times of its entries are not in order', async () => {
    // A node's clock is behind at the third entry, and ahead at the fifth.
    const entries = entriesAt(10, 20, 5, 20, 40, 30, 50);
    for (const [seconds, expected] of [
      [9, 0],
      [10, 1],
      [19, 1],
      [20, 4],
      [39, 4],
      [40, 6],
      [59, 7],
    ] as const) {
      const place = await placeAsOf(entries, at(seconds));
      assert.equal(place.entries, expected, `as of ${seconds}`);
      assert.equal(place.position, BigInt(expected) as LogPosition);
      assert.ok(place.logTime === null ? expected === 0 : place.logTime <= at(seconds));
    }
  });

  test('is read no further than necessary, and continues from a kept place', async () => {
    const entries = entriesAt(10, 20, 5, 20, 40, 30, 50);
    let read = 0;
    async function* counted(from: number): AsyncGenerator<RecordedEvent> {
      for (const entry of entries.slice(from)) {
        read += 1;
        yield entry;
      }
    }
    const kept = await placeAsOf(counted(0), at(20));
    assert.equal(read, 5);
    assert.deepEqual(await placeAsOf(counted(kept.entries), at(45), kept), await placeAsOf(entries, at(45)));
    // The third entry's own time is earlier, but its log time is that of the second.
    const third = entries.slice(0, 3).reduce(placeAfter, await placeAsOf([], at(0)));
    assert.equal(third.logTime, at(20));
  });

  test('holds only the record events of that account, and whole appends', async () => {
    const log = createMemoryEventStore();
    const [ada, bob] = [newAccount(), newAccount()];
    const stream = newStream();
    const events = [newEvent({ accountId: ada }), newEvent({ accountId: ada })];
    await log.append({ stream, expected: 'none', events });
    for (const other of [
      newEvent({ accountId: bob }),
      newEvent({ accountId: null }),
      newEvent({ accountId: ada, isRecord: false }),
    ]) {
      await log.append({ stream: newStream(), expected: 'none', events: [other] });
    }
    const all = await log.readAll(0n as LogPosition, 100);
    const entries = all.filter((event) => isEntryOf(ada, event));
    assert.deepEqual(
      entries.map(({ id }) => id),
      events.map(({ id }) => id),
    );
    const [first] = entries;
    assert.ok(first !== undefined);
    assert.equal((await placeAsOf(entries, first.occurredAt)).entries, 2);
  });
});
