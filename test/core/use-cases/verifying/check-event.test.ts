/** Whether an event has a form that this program reads, and what is no fault of the event. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { type EventStore, EventStoreError } from '../../../../core/ports/event-store.ts';
import { checkEvent } from '../../../../core/use-cases/verifying/check-event.ts';
import { newEvent, newStream } from '../../../support/events.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { pushed } from '../../../support/repository-history.ts';

/** Checks the event of a wide push, whose parts are read so. */
async function checkWide(readStream: EventStore['readStream']): Promise<readonly string[]> {
  const events = createMemoryEventStore();
  const stream = newStream();
  const parts = { stream: newStream('refUpdates'), count: 1, updates: 1, sha256: 'a'.repeat(64) };
  const { type, data } = pushed([], { parts });
  await events.append({ stream, expected: 'none', events: [newEvent({ type, data })] });
  const [event = assert.fail('no event')] = await events.readStream(stream, { direction: 'forwards', limit: 1 });
  const faults: string[] = [];
  const reports = { fault: (text: string) => void faults.push(text), onRead: () => undefined };
  assert.equal(await checkEvent({ events: { readStream }, digest }, event, reports), null);
  return faults;
}

describe('The check of an event', () => {
  test('tells the fault of a wide push whose parts are gone or cannot be read', async () => {
    const [gone] = await checkWide(async () => []);
    assert.match(gone ?? '', /are not those that a push names$/);
    const unreadable = new EventStoreError('event-unreadable', 'This row holds no event');
    assert.deepEqual(await checkWide(() => Promise.reject(unreadable)), ['This row holds no event']);
  });

  test('rejects where the log is away, which is no fault', async () => {
    const away = new EventStoreError('log-unavailable', 'The log is away');
    await assert.rejects(
      checkWide(() => Promise.reject(away)),
      /The log is away/,
    );
  });
});
