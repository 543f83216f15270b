/** What EventStoreDB adds to pruning: tombstones, answers that are lost, and appends to a stream that was pruned. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'vitest';
import { LOG_START, streamName } from '../../../core/kernel/envelope.ts';
import { timestamp } from '../../../core/kernel/ids.ts';
import { EventStoreError } from '../../../core/ports/event-store.ts';
import { collect, newEvent, newId, newStream } from '../../support/events.ts';
import { openLog } from '../../support/eventstoredb/open-log.ts';

const LATER = timestamp('2026-12-21T10:00:00.000Z');

async function withDelivery(context: TestContext) {
  const { server, store, log } = await openLog(context);
  const stream = streamName('webhookDelivery', newId());
  const requested = newEvent({ isRecord: false });
  const append = (expected: number | 'none', event = newEvent({ isRecord: false })) =>
    store.append({ stream, expected, events: [event] });
  await append('none', requested);
  await append(0);
  await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
  return { server, store, log, stream, append, wanted: { stream, lastRevision: 1 } };
}

test('A tombstone whose answer was lost is found, and the stream is gone', async (context) => {
  const { server, store, stream, wanted } = await withDelivery(context);
  let lost = 0;
  server.faults.append = () => {
    lost += 1;
    return lost === 1 ? 'lose-answer' : null;
  };
  await store.pruning.prune(wanted, LATER);
  assert.equal(lost, 1, 'no second tombstone');
  assert.deepEqual(await store.readStream(stream, { direction: 'forwards', limit: 9 }), []);
});

test('A tombstone that was lost itself is set again', async (context) => {
  const { server, store, stream, wanted } = await withDelivery(context);
  let calls = 0;
  server.faults.append = () => {
    calls += 1;
    return calls === 1 ? 'stall' : null;
  };
  assert.equal(await store.pruning.prune(wanted, LATER), true);
  assert.deepEqual(await store.readStream(stream, { direction: 'backwards', limit: 9 }), []);
});

test('Who knew a stream before it was pruned gets a conflict, and who begins it again an error', async (context) => {
  const { store, append, stream, wanted } = await withDelivery(context);
  assert.equal(await store.pruning.prune(wanted, LATER), true);
  assert.deepEqual(await append(1), { outcome: 'conflict', stream, actual: 'none' });
  await assert.rejects(append('none'), (error) => error instanceof EventStoreError && error.code === 'log-unavailable');
});

test('A tombstone is an event of the server: positions pass it, nobody gets it, and nothing is logged', async (context) => {
  const { store, log, wanted } = await withDelivery(context);
  const { subscription, events, positions, until } = collect(store, LOG_START);
  await until(() => events.length === 3);
  assert.equal(await store.pruning.prune(wanted, LATER), true);
  const head = await store.head();
  await until(() => (positions.at(-1) ?? LOG_START) >= head);
  await subscription.close();
  assert.equal(events.length, 3);
  assert.equal((await store.readAll(LOG_START, 10)).length, 1);
  assert.deepEqual(log.lines, []);
});
