/** Reads of EventStoreDB, and what is stored there. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { canonicalJson } from '../../../core/kernel/json.ts';
import { asNew, newEvent, newStream } from '../../support/events.ts';
import { openLog, openServer, openStore } from '../../support/eventstoredb/open-log.ts';

describe('reads of EventStoreDB', () => {
  test('that bring nothing end by themselves, and leave the client that brings nothing', {
    timeout: 30_000,
  }, async (context) => {
    const { server, store, log } = await openLog(context, { readRetrySpanMs: 10_000 });
    await store.head();
    const stream = newStream();
    await store.append({ stream, expected: 'none', events: [newEvent()] });
    let silent = 2;
    server.faults.read = async () => {
      if (silent-- > 0) await new Promise(() => undefined);
    };
    const [event] = await store.readStream(stream, { direction: 'forwards', limit: 1 });
    assert.equal(event?.revision, 0);
    assert.ok(log.lines.some(({ message }) => message.includes('Connecting to EventStoreDB anew')));
  });

  test('fail in the end while nothing answers, in words of the port', { timeout: 30_000 }, async (context) => {
    const { server, store } = await openLog(context, { readRetrySpanMs: 500 });
    server.faults.stalled = true;
    await assert.rejects(store.head(), { code: 'log-unavailable' });
    server.faults.stalled = false;
    await store.head();
    await server.stop();
    // The first call after this gets gRPC's own error, later ones the client's.
    for (let call = 0; call < 3; call += 1) await assert.rejects(store.head(), { code: 'log-unavailable' });
  });

  test('that were left do no harm when they fail later', { timeout: 30_000 }, async (context) => {
    const { server, store } = await openLog(context, { readRetrySpanMs: 1 });
    await store.head();
    const late = Promise.withResolvers<void>();
    server.faults.read = () => late.promise;
    await assert.rejects(store.head(), { code: 'log-unavailable' });
    late.reject({ code: 13, details: 'Internal' });
    server.faults.read = null;
    await store.head();
  });

  test('of the head are shared by all who ask at the same moment', async (context) => {
    const { server, store } = await openLog(context);
    await store.head();
    const { allReads } = server.counts;
    await Promise.all(Array.from({ length: 200 }, () => store.head()));
    assert.equal(server.counts.allReads - allReads, 2);
  });

  test('and appends go to the leader, whichever node the address names', { timeout: 30_000 }, async (context) => {
    const leader = await openServer(context);
    const follower = await openServer(context);
    follower.faults.leaderPort = leader.port;
    const { store } = openStore(context, follower.url);
    const stream = newStream();
    assert.equal((await store.append({ stream, expected: 'none', events: [newEvent()] })).outcome, 'appended');
    assert.equal((await store.readStream(stream, { direction: 'forwards', limit: 1 })).length, 1);
    assert.ok(leader.log.stream(stream) !== null);
    assert.equal(follower.log.stream(stream), null);
  });

  test('and appends find the leader again after it moved', { timeout: 30_000 }, async (context) => {
    const first = await openServer(context);
    const second = await openServer(context);
    const { store } = openStore(context, first.url);
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    first.faults.leaderPort = second.port;
    await first.restart();
    const stream = newStream();
    assert.equal((await store.append({ stream, expected: 'none', events: [newEvent()] })).outcome, 'appended');
    assert.ok(second.log.stream(stream) !== null);
  });

  test('are never answered by a leader of yesterday', { timeout: 30_000 }, async (context) => {
    const [first, second] = [await openServer(context), await openServer(context)];
    const { store } = openStore(context, first.url);
    const [here, there] = [newStream(), newStream()];
    await store.append({ stream: here, expected: 'none', events: [newEvent()] });
    for (let n = 0; n < 5; n += 1) second.appendSystemEvent();
    first.faults.leaderPort = second.port;
    assert.equal(await store.head(), (second.log.events.at(-1)?.position ?? 0n) + 1n);
    second.faults.leaderPort = first.port;
    first.faults.leaderPort = null;
    await store.append({ stream: there, expected: 'none', events: [newEvent()] });
    first.faults.leaderPort = second.port;
    second.faults.leaderPort = null;
    assert.deepEqual(await store.readStream(there, { direction: 'forwards', limit: 1 }), []);
  });

  test('of a cluster ask it who leads', { timeout: 30_000 }, async (context) => {
    const leader = await openServer(context);
    const follower = await openServer(context);
    follower.faults.leaderPort = leader.port;
    const { store } = openStore(context, `esdb+discover://127.0.0.1:${follower.port}?tls=false`);
    const stream = newStream();
    await store.append({ stream, expected: 'none', events: [newEvent()] });
    assert.ok(leader.log.stream(stream) !== null);
  });

  test('are refused of servers that cannot batch appends, which tell no positions either', async (context) => {
    const server = await openServer(context, { batches: false });
    const { store } = openStore(context, server.url);
    await assert.rejects(store.head(), { code: 'log-unavailable', message: /before 22\.6/ });
  });
});

describe('events in EventStoreDB', () => {
  test('are the bytes of their canonical JSON, marked as JSON where the client writes just those', async (context) => {
    const { server, store } = await openLog(context);
    const stream = newStream();
    const plain = newEvent({ data: { z: 1, a: [{ y: 'é', b: null }], text: '\0\u{1f600}' } });
    // JSON.stringify puts keys that read like array indices first, in numeric order.
    const indices = newEvent({ data: { b: 1, '10': true, '9': false } });
    await store.append({ stream, expected: 'none', events: [plain, indices] });
    const stored = server.log.stream(stream) ?? [];
    assert.deepEqual(
      stored.map(({ data }) => Buffer.from(data).toString('utf8')),
      [canonicalJson(plain.data), canonicalJson(indices.data)],
    );
    assert.deepEqual(
      stored.map(({ contentType }) => contentType),
      ['application/json', 'application/octet-stream'],
    );
    const read = await store.readStream(stream, { direction: 'forwards', limit: 2 });
    assert.deepEqual(read.map(asNew), [plain, indices]);
    const metadata = JSON.parse(Buffer.from(stored[0]?.metadata ?? []).toString('utf8'));
    assert.deepEqual(metadata, {
      account_id: plain.accountId,
      actor: { kind: 'system', id: 'test' },
      causation_id: null,
      occurred_at: plain.occurredAt,
      request_id: 'request-1',
      source_address_ref: null,
      version: 1,
    });
  });

  test('with a BigInt or undefined in them are refused before the client sees them', async (context) => {
    const { server, store } = await openLog(context);
    for (const value of [1n, undefined, Number.NaN, () => 1]) {
      const events = [newEvent({ data: { value } as never })];
      const append = store.append({ stream: newStream(), expected: 'none', events });
      await assert.rejects(append, { code: 'invalid-event' });
    }
    assert.equal(server.counts.appends, 0);
  });

  test('that EventStoreDB would count as too large are refused before they are sent', async (context) => {
    const { server, store } = await openLog(context);
    // Type names count twice there: below the port's own limit, beyond EventStoreDB's.
    const note = 'x'.repeat(1024 * 1024 - 2_000);
    const events = [newEvent({ type: 'T'.repeat(1_500), data: { note } })];
    await assert.rejects(store.append({ stream: newStream(), expected: 'none', events }), { code: 'append-too-large' });
    assert.equal(server.counts.appends, 0);
  });
});

describe('the log of one process', () => {
  test('is open once at a time', async (context) => {
    const { server, store } = await openLog(context);
    assert.throws(() => openStore(context, server.url), /has an EventStoreDB log open/);
    await store.close();
    const { store: next } = openStore(context, server.url);
    await next.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
  });
});
