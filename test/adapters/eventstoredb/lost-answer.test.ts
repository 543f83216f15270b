/** Appends whose answer does not come: they are repeated with the same ids and expectation, and happen once. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { newEvent, newStream } from '../../support/events.ts';
import type { AppendFault } from '../../support/eventstoredb/faults.ts';
import { openLog, openServer, openStore } from '../../support/eventstoredb/open-log.ts';
import type { ProtocolServer } from '../../support/eventstoredb/protocol-server.ts';

/** Of gRPC's status codes. */
const [INTERNAL, UNAVAILABLE] = [13, 14];

/** The fault, for the first appends only; every append that came is kept. */
function failFirst(server: ProtocolServer, fault: AppendFault, times = 1): { readonly ids: readonly string[] }[] {
  const seen: { ids: readonly string[] }[] = [];
  server.faults.append = (_stream, ids) => {
    seen.push({ ids });
    return seen.length <= times ? fault : null;
  };
  return seen;
}

const stored = (server: ProtocolServer) => server.log.events.filter(({ stream }) => !stream.startsWith('$'));

describe('an append to EventStoreDB without an answer', () => {
  const faults: readonly AppendFault[] = [
    ...(['lose-answer', 'stall', 'half-close', 'commit-and-half-close', 'answer-late'] as const),
    ...(['time-out', 'commit-and-time-out', 'restart', 'commit-and-restart'] as const),
  ];
  for (const fault of faults) {
    test(`is repeated with the same ids after: ${fault}`, { timeout: 20_000 }, async (context) => {
      const { server, store } = await openLog(context);
      await store.head();
      const seen = failFirst(server, fault);
      const request = { stream: newStream(), expected: 'none', events: [newEvent(), newEvent()] } as const;
      const result = await store.append(request);
      assert.deepEqual(
        seen,
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

  test('leaves a stream of appends that the server has ended, with those that wait on it', {
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

  test('does not keep the log from being closed', { timeout: 20_000 }, async (context) => {
    const { server, store } = await openLog(context, { appendRetrySpanMs: 1 });
    failFirst(server, 'half-close', 100);
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await assert.rejects(append, { code: 'append-outcome-unknown' });
    await store.close();
  });

  test('for longer than it is repeated is told to be unknown, and can still be asked for', async (context) => {
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

  test('is told in time, also when its turn never came', { timeout: 20_000 }, async (context) => {
    const { server, store } = await openLog(context, { appendRetrySpanMs: 500 });
    failFirst(server, 'stall', 1_000);
    const append = () => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    const results = await Promise.allSettled(Array.from({ length: 300 }, append));
    const codes = results.map((result) => (result.status === 'rejected' ? result.reason.code : 'appended'));
    // Those that were never sent are known not to have happened.
    const sent = codes.filter((code) => code === 'append-outcome-unknown').length;
    assert.equal(codes.filter((code) => code === 'log-unavailable').length, codes.length - sent);
    assert.ok(sent > 0 && sent < codes.length / 2, `${sent} were sent`);
  });

  test('because there is no server is told to be impossible', async (context) => {
    const server = await openServer(context);
    await server.stop();
    const { store } = openStore(context, server.url, { appendRetrySpanMs: 300, readRetrySpanMs: 300 });
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await assert.rejects(append, { code: 'log-unavailable' });
    await assert.rejects(store.head(), { code: 'log-unavailable' });
    await assert.rejects(store.readAll(0n as never, 1), { code: 'log-unavailable' });
  });

  test('is made once the server is there, without a new start', { timeout: 20_000 }, async (context) => {
    const server = await openServer(context);
    await server.stop();
    const { store } = openStore(context, server.url);
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await sleep(200);
    await server.start();
    assert.equal((await append).outcome, 'appended');
  });

  test("whose first call fails with gRPC's own error is repeated", { timeout: 20_000 }, async (context) => {
    const { server, store } = await openLog(context);
    let refusals = 3;
    server.faults.features = () => (refusals-- > 0 ? UNAVAILABLE : null);
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.deepEqual([result.outcome, refusals], ['appended', -1]);
  });

  test("leaves a client that keeps gRPC's own error for ever", { timeout: 20_000 }, async (context) => {
    const { server, store } = await openLog(context, { appendRetrySpanMs: 5_000 });
    await store.head();
    // After the restart the same client asks again what the server can do, and keeps whatever it is told.
    failFirst(server, 'restart');
    let refusals = 1;
    server.faults.features = () => (refusals-- > 0 ? INTERNAL : null);
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.equal(result.outcome, 'appended');
    assert.ok(refusals < 0, 'it was refused once');
  });

  test('is told when it was refused for its credentials, and is not repeated', async (context) => {
    const { server, store } = await openLog(context);
    const seen = failFirst(server, 'access-denied', 100);
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await assert.rejects(append, { code: 'log-unavailable' });
    assert.equal(seen.length, 1);
  });
});

describe('a server that stops in the middle of many appends', () => {
  test('loses none, doubles none, and takes the process with it in no way', { timeout: 60_000 }, async (context) => {
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

  test('is left whole: nothing of a client that was given up stays open there', {
    timeout: 20_000,
  }, async (context) => {
    const { server, store } = await openLog(context);
    await store.head();
    failFirst(server, 'stall', 3);
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    // An error of an old stream would reject the appends of the new one, whose answers would then be thrown.
    assert.equal(server.openBatches(), 1);
  });
});

describe('appends to a server with another clock', () => {
  test('are taken though its clock is an hour ahead', async (context) => {
    const { server, store } = await openLog(context, { appendRetrySpanMs: 500 });
    server.faults.clockAheadMs = 60 * 60_000;
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.equal(result.outcome, 'appended');
  });
});

describe('an append that was found again', () => {
  test('without its place is looked up', async (context) => {
    const { server, store } = await openLog(context);
    server.faults.append = () => 'no-position';
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent(), newEvent()] });
    const last = stored(server).at(-1);
    assert.deepEqual(result, { outcome: 'appended', revision: 1, position: (last?.position ?? 0n) + 1n });
  });
});
