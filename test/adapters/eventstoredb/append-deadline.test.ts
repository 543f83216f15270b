/** Appends whose deadline passes while they wait: nothing of them is handed to the client any more. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { newEvent, newStream } from '../../support/events.ts';
import { openLog } from '../../support/eventstoredb/open-log.ts';

/** The number of appends that are with the client at a time. */
const CONCURRENT_APPENDS = 15;

const plain = () => ({ stream: newStream(), expected: 'none', events: [newEvent()] }) as const;

describe('An append to EventStoreDB whose deadline passes', () => {
  test('while it waits for its turn is not sent', { timeout: 20_000 }, async (context) => {
    const { server, store } = await openLog(context);
    await store.head();
    let late = false;
    const request = { ...plain(), isTooLate: () => late };
    const received: string[] = [];
    server.faults.append = (stream) => {
      received.push(stream);
      late = true;
      return received.length <= CONCURRENT_APPENDS ? 'stall' : null;
    };
    const others = Array.from({ length: CONCURRENT_APPENDS }, () => store.append(plain()));
    const refused = assert.rejects(store.append(request), { code: 'append-too-late' });
    assert.ok((await Promise.all(others)).every(({ outcome }) => outcome === 'appended'));
    await refused;
    assert.ok(!received.includes(request.stream));
  });

  test('while its guards are read is not sent', async (context) => {
    const { server, store } = await openLog(context);
    const token = newStream('accessToken');
    await store.append({ stream: token, expected: 'none', events: [newEvent()] });
    let late = false;
    server.faults.read = () => {
      late = true;
    };
    const { appends } = server.counts;
    const request = { ...plain(), guards: [{ stream: token, revision: 0 }], isTooLate: () => late };
    await assert.rejects(store.append(request), { code: 'append-too-late' });
    assert.equal(server.counts.appends, appends);
  });

  test('after it was sent and before an answer came is not sent again, and its outcome is unknown', async (context) => {
    const { server, store } = await openLog(context);
    await store.head();
    let sent = 0;
    server.faults.append = () => {
      sent += 1;
      return 'stall';
    };
    await assert.rejects(store.append({ ...plain(), isTooLate: () => sent > 0 }), { code: 'append-outcome-unknown' });
    assert.equal(sent, 1);
  });
});
