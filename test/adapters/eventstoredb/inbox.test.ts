/** What waits between the server and a subscriber. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createInbox } from '../../../adapters/eventstoredb/inbox.ts';
import type { LogPosition, RecordedEvent } from '../../../core/kernel/envelope.ts';
import { newEvent, newStream } from '../../support/events.ts';

function recorded(position: number, note = ''): RecordedEvent {
  return {
    ...newEvent({ data: { note } }),
    stream: newStream(),
    revision: 0,
    position: BigInt(position) as LogPosition,
  };
}

async function hasRoom(inbox: ReturnType<typeof createInbox>): Promise<boolean> {
  let room = false;
  void inbox.room().then(() => {
    room = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return room;
}

describe('the inbox of a subscription', () => {
  test('is full at its bounds of events, of bytes and of what is passed over, until it is taken', async () => {
    const large = 'x'.repeat(1024 * 1024);
    const fillings = [
      { count: 1_000, note: '', wanted: true },
      { count: 16, note: large, wanted: true },
      { count: 10_000, note: '', wanted: false },
    ];
    for (const { count, note, wanted } of fillings) {
      const inbox = createInbox();
      for (let n = 1; n <= count; n += 1) {
        if (n === count) assert.equal(await hasRoom(inbox), true, `before the last of ${count}`);
        const event = recorded(n, note);
        inbox.put(event.position, { event, wanted });
      }
      assert.equal(await hasRoom(inbox), false, `after ${count}`);
      const batch = inbox.take();
      assert.deepEqual([batch?.position, batch?.events.length], [BigInt(count), wanted ? count : 0]);
      assert.equal(await hasRoom(inbox), true);
      assert.equal(inbox.take(), null);
    }
  });

  test('gives what came before a failure first', () => {
    const inbox = createInbox();
    const event = recorded(1);
    inbox.put(event.position, { event, wanted: false });
    inbox.fail(new Error('late'));
    assert.deepEqual(inbox.take(), { events: [], position: 1n, last: event });
    assert.throws(() => inbox.take(), /late/);
  });
});
