/** EventStoreDB shows an append's events one by one while it stores them: no reader takes a part for the whole. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import type { EventId } from '../../../core/kernel/ids.ts';
import { collect, newEvent, newStream } from '../../support/events.ts';
import { openLog } from '../../support/eventstoredb/open-log.ts';

async function openInTheMiddle(context: TestContext) {
  const { server, store } = await openLog(context);
  const stream = newStream();
  const events = [newEvent(), newEvent(), newEvent()];
  await store.append({ stream, expected: 'none', events: [newEvent()] });
  await store.append({ stream, expected: 0, events });
  /** From now on, the next reads show only the first event of the append. */
  const split = (reads: number): void => {
    let left = reads;
    server.faults.unseen = () => (left-- > 0 ? 2 : 0);
  };
  return { server, store, stream, split, last: events.map(({ id }) => id) };
}

const lastIds = (events: readonly { readonly id: EventId }[]): readonly EventId[] =>
  events.slice(-3).map(({ id }) => id);

describe('an append that EventStoreDB shows in part', () => {
  test('is whole in a page of the whole log', async (context) => {
    const { store, split, last } = await openInTheMiddle(context);
    split(3);
    assert.deepEqual(lastIds(await store.readAll(LOG_START, 2)), last);
  });

  test('is whole in a page of its stream', async (context) => {
    const { store, stream, split, last } = await openInTheMiddle(context);
    split(3);
    assert.deepEqual(lastIds(await store.readStream(stream, { direction: 'forwards', limit: 2 })), last);
  });

  test('is whole at the end of its stream, read backwards', async (context) => {
    const { store, stream, split, last } = await openInTheMiddle(context);
    split(3);
    assert.deepEqual(lastIds(await store.readStream(stream, { direction: 'backwards', limit: 1 })).toReversed(), last);
    split(3);
    const beyond = { direction: 'backwards', from: 9, limit: 1 } as const;
    assert.deepEqual(lastIds(await store.readStream(stream, beyond)).toReversed(), last);
  });

  test('is delivered whole to subscriptions', async (context) => {
    const { store, split, last } = await openInTheMiddle(context);
    split(4);
    const { events, batches, until } = collect(store, LOG_START);
    await until(() => events.length === 4);
    assert.deepEqual(lastIds(batches.find((batch) => batch.some(({ id }) => id === last[0])) ?? []), last);
  });
});
