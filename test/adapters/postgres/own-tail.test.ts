/** What a process knows of the end of the log, since it appended that itself. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createOwnTail } from '../../../adapters/postgres/own-tail.ts';
import type { LogPosition, RecordedEvent } from '../../../core/kernel/envelope.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';

const MIB = 1024 * 1024;

/** The first events of a log, each appended alone. */
async function appended(count: number): Promise<readonly RecordedEvent[]> {
  const store = createMemoryEventStore();
  for (let event = 0; event < count; event += 1) {
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
  }
  return store.readAll(0n as LogPosition, count);
}

function tailOf(events: readonly RecordedEvent[], sizeBytes = 100) {
  const tail = createOwnTail();
  for (const event of events) tail.add([{ events: [event], sizeBytes }]);
  return (after: RecordedEvent | undefined): readonly RecordedEvent[] | null => {
    assert.ok(after !== undefined);
    return tail.behind({ position: after.position, id: after.id }, null)?.events ?? null;
  };
}

describe('What this process appended', () => {
  test('is known behind each event of it, and behind no other', async () => {
    const events = await appended(5);
    const behind = tailOf(events.slice(1));
    for (const [index, event] of events.slice(0, -1).entries()) {
      assert.deepEqual(behind(event), events.slice(index + 1));
    }
    assert.equal(behind(events.at(-1)), null);
  });

  test('begins again behind an event that it did not append', async () => {
    const events = await appended(5);
    const behind = tailOf([...events.slice(0, 2), ...events.slice(3)]);
    assert.equal(behind(events[0]), null);
    assert.deepEqual(behind(events[2]), events.slice(3));
  });

  test('is not taken twice', async () => {
    const events = await appended(3);
    const behind = tailOf([...events, ...events.slice(1)]);
    assert.deepEqual(behind(events[0]), events.slice(1));
  });

  test('is forgotten beyond 1,000 events, the last of them never', async () => {
    const events = await appended(1_600);
    for (const count of [1_000, 1_001, 1_500, 1_600]) {
      const behind = tailOf(events.slice(0, count));
      assert.equal(behind(events[count - 500])?.length, 499);
      assert.equal(behind(events[0]) === null, count > 1_000);
    }
  });

  test('is forgotten beyond 4 MiB, the last append only if it alone is larger', async () => {
    const events = await appended(4);
    const large = tailOf(events, 3 * MIB);
    assert.deepEqual([large(events[1]), large(events[2])], [null, events.slice(3)]);
    const larger = tailOf(events, 5 * MIB);
    assert.equal(larger(events[2]), null);
  });
});
