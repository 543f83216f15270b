/** Appends that get no answer: the adapter retries them with the same ids and expectation, and they happen once. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { newEvent, newStream } from '../../support/events.ts';
import type { AppendFault } from '../../support/eventstoredb/faults.ts';
import { openLog, openServer, openStore } from '../../support/eventstoredb/open-log.ts';
import type { ProtocolServer } from '../../support/eventstoredb/protocol-server.ts';

/** Status codes of gRPC. */
const [INTERNAL, UNAVAILABLE] = [13, 14];

/** Makes the server fail the first appends. Returns the list of all appends that it received. */
function failFirst(server: ProtocolServer, fault: AppendFault, times = 1): { readonly ids: readonly string[] }[] {
  const received: { ids: readonly string[] }[] = [];
  server.faults.append = (_stream, ids) => {
    received.push({ ids });
    return received.length <= times ? fault : null;
  };
  return received;
}

const stored = (server: ProtocolServer) => server.log.events.filter(({ stream }) => !stream.startsWith('$'));

describe('an append to EventStoreDB without an answer', () => {
  const faults: readonly AppendFault[] = [
    ...(['lose-answer', 'stall', 'half-close', 'commit-and-half-close', 'answer-late'] as const),
    ...(['time-out', 'commit-and-time-out', 'restart', 'commit-and-restart'] as const),
  ];
  for (const fault of faults) {
    test(`is retried with the same ids after: ${fault}`, { timeout: 20_000 }, async (context) => {
      const { server, store } = await openLog(context);
      await store.head();
      const received = failFirst(server, fault);
      const request = { stream: newStream(), expected: 'none', events: [newEvent(), newEvent()] } as const;
      const result = await store.append(request);
      assert.deepEqual(
        received,
        Array.from({ length: 2 }, () => ({ ids: request.events.map(({ id }) => id) })),
      );
      const events = stored(server);
      assert.deepEqual(
        events.map(({ id }) => id),
        request.events.map(({ id }) => id),
      );
      assert.deepEqual(result, { outcome: 'appended', revision: 1, position: (events[1]?.position ?? 0n) + 1n });
    });
  }

  test('gives up a stream of appends that the server has ended, and retries all that wait on it', {
    timeout: 20_000,
  }, async (context) => {
    const { server, store } = await openLog(context);
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    failFirst(server, 'half-close');
    const append = () => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    const results = await Promise.all(Array.from({ length: 8 }, append));
    assert.ok(results.every(({ outcome }) => outcome === 'appended'));
    assert.equal((await append()).outcome, 'appended');
    assert.equal(stored(server).length, 10);
  });

  test('does not prevent the log from closing', { timeout: 20_000 }, async (context) => {
    const { server, store } = await openLog(context, { appendRetrySpanMs: 1 });
    failFirst(server, 'half-close', 100);
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await assert.rejects(append, { code: 'append-outcome-unknown' });
    await store.close();
  });

  test('fails as unknown when its retries end, and returns its result when it is appended again', async (context) => {
    const { server, store } = await openLog(context, { appendRetrySpanMs: 500 });
    failFirst(server, 'lose-answer', 100);
    const request = { stream: newStream(), expected: 'none', events: [newEvent()] } as const;
    await assert.rejects(store.append(request), { code: 'append-outcome-unknown' });
    server.faults.append = null;
    const [event] = stored(server);
    assert.deepEqual(await store.append(request), {
      outcome: 'appended',
      revision: 0,
      position: (event?.position ?? 0n) + 1n,
    });
  });

  test('fails in time, even when no attempt was sent', { timeout: 20_000 }, async (context) => {
    const { server, store } = await openLog(context, { appendRetrySpanMs: 500 });
    failFirst(server, 'stall', 1_000);
    const append = () => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    const results = await Promise.allSettled(Array.from({ length: 300 }, append));
    const codes = results.map((result) => (result.status === 'rejected' ? result.reason.code : 'appended'));
    // An append that was never sent certainly did not happen.
    const sent = codes.filter((code) => code === 'append-outcome-unknown').length;
    assert.equal(codes.filter((code) => code === 'log-unavailable').length, codes.length - sent);
    assert.ok(sent > 0 && sent < codes.length / 2, `${sent} were sent`);
  });

  test('fails as unavailable when there is no server', async (context) => {
    const server = await openServer(context);
    await server.stop();
    const { store } = openStore(context, server.url, { appendRetrySpanMs: 300, readRetrySpanMs: 300 });
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await assert.rejects(append, { code: 'log-unavailable' });
    await assert.rejects(store.head(), { code: 'log-unavailable' });
    await assert.rejects(store.readAll(0n as never, 1), { code: 'log-unavailable' });
  });

  test('succeeds when the server starts later, without a restart of the process', {
    timeout: 20_000,
  }, async (context) => {
    const server = await openServer(context);
    await server.stop();
    const { store } = openStore(context, server.url);
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await sleep(200);
    await server.start();
    assert.equal((await append).outcome, 'appended');
  });

  test("is retried when its first call fails with gRPC's own error", { timeout: 20_000 }, async (context) => {
    const { server, store } = await openLog(context);
    let refusals = 3;
    server.faults.features = () => (refusals-- > 0 ? UNAVAILABLE : null);
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.deepEqual([result.outcome, refusals], ['appended', -1]);
  });

  test("gives up a client that keeps gRPC's own error permanently", { timeout: 20_000 }, async (context) => {
    const { server, store } = await openLog(context, { appendRetrySpanMs: 5_000 });
    await store.head();
    // After the restart the same client requests the server's features again, and keeps whatever answer it gets.
    failFirst(server, 'restart');
    let refusals = 1;
    server.faults.features = () => (refusals-- > 0 ? INTERNAL : null);
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.equal(result.outcome, 'appended');
    assert.ok(refusals < 0, 'it was refused once');
  });

  test('fails without a retry when the server refuses its credentials', async (context) => {
    const { server, store } = await openLog(context);
    const received = failFirst(server, 'access-denied', 100);
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await assert.rejects(append, { code: 'log-unavailable' });
    assert.equal(received.length, 1);
  });
});

describe('a server that stops in the middle of many appends', () => {
  test('loses none, stores none twice, and does not end the process', { timeout: 60_000 }, async (context) => {
    const { server, store } = await openLog(context);
    await store.head();
    const padding = 'x'.repeat(100_000);
    for (let round = 0; round < 3; round += 1) {
      server.faults.append = () => 'stall';
      const appends = Array.from({ length: 64 }, () =>
        store.append({ stream: newStream(), expected: 'none', events: [newEvent({ data: { padding } })] }),
      );
      await sleep(100);
      server.faults.append = null;
      await server.restart();
      const results = await Promise.all(appends);
      assert.ok(results.every(({ outcome }) => outcome === 'appended'));
    }
    assert.equal(stored(server).length, 192);
    assert.equal(new Set(stored(server).map(({ id }) => id)).size, 192);
  });

  test('has no open stream of a client that was given up', {
    timeout: 20_000,
  }, async (context) => {
    const { server, store } = await openLog(context);
    await store.head();
    failFirst(server, 'stall', 3);
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    // An error of the old stream would reject the appends of the new one, and their answers would then throw.
    assert.equal(server.openBatches(), 1);
  });
});

describe('appends to a server with a different clock', () => {
  test('succeed when its clock is an hour ahead', async (context) => {
    const { server, store } = await openLog(context, { appendRetrySpanMs: 500 });
    server.faults.clockAheadMs = 60 * 60_000;
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.equal(result.outcome, 'appended');
  });
});

describe('an append that the server found stored already', () => {
  test('is looked up when the answer has no position', async (context) => {
    const { server, store } = await openLog(context);
    server.faults.append = () => 'no-position';
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent(), newEvent()] });
    const last = stored(server).at(-1);
    assert.deepEqual(result, { outcome: 'appended', revision: 1, position: (last?.position ?? 0n) + 1n });
  });
});
