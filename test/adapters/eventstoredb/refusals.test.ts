/** A server that refuses what it took before: its user's password was changed, or a right was taken away. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { openLog } from '../../support/eventstoredb/open-log.ts';

const newAppend = () => ({ stream: newStream(), expected: 'none', events: [newEvent()] }) as const;

describe('an EventStoreDB that refuses', () => {
  for (const [refuses, message] of [
    ['credentials', /^EventStoreDB refuses the user or the password of STRATA_EVENTSTORE_URL/],
    ['right', /^EventStoreDB denies the user of STRATA_EVENTSTORE_URL the right to /],
  ] as const) {
    test(`the ${refuses} is said to do so by every call, and served again when it no longer does`, async (context) => {
      const { server, store } = await openLog(context);
      await store.head();
      const { closed } = store.subscribe({ after: LOG_START, onEvents: async () => undefined });
      const ended = assert.rejects(closed, { name: 'EventStoreError', code: 'log-unavailable', message });
      server.faults.refuses = refuses;
      await server.restart();
      const stream = newStream();
      const outage = { name: 'EventStoreError', code: 'log-unavailable', message };
      await assert.rejects(store.head(), outage);
      await assert.rejects(store.readStream(stream, { direction: 'forwards', limit: 1 }), outage);
      await assert.rejects(store.append(newAppend()), outage);
      await ended;
      server.faults.refuses = null;
      assert.equal((await store.append(newAppend())).outcome, 'appended');
    });
  }

  test('one append is said to deny the right to it', async (context) => {
    const { server, store } = await openLog(context);
    server.faults.append = () => 'access-denied';
    const message = /^EventStoreDB denies the user of STRATA_EVENTSTORE_URL the right to read and write streams$/;
    await assert.rejects(store.append(newAppend()), { code: 'log-unavailable', message });
  });
});
