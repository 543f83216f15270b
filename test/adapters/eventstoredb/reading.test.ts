/** Reads of EventStoreDB, and the bytes that are stored there. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { canonicalJson } from '../../../core/kernel/json.ts';
import { asNew, newEvent, newStream } from '../../support/events.ts';
import { openLog, openServer, openStore } from '../../support/eventstoredb/open-log.ts';

describe('reads of EventStoreDB', () => {
  test('fail after a silence, and give up a client that got no answer at all', {
    timeout: 30_000,
  }, async (context) => {
    const { server, store, log } = await openLog(context, { readRetrySpanMs: 10_000 });
    await store.head();
    const stream = newStream();
    await store.append({ stream, expected: 'none', events: [newEvent()] });
    // Whatever is asked next gets an answer: only this read's own time ends it.
    let silent = 1;
    server.faults.read = async () => {
      if (silent-- > 0) await new Promise(() => undefined);
    };
    const [event] = await store.readStream(stream, { direction: 'forwards', limit: 1 });
    assert.equal(event?.revision, 0);
    assert.ok(log.lines.some(({ message }) => message.includes('Connecting to EventStoreDB again')));
  });

  test("fail with the port's error while the server does not answer", { timeout: 30_000 }, async (context) => {
    const { server, store } = await openLog(context, { readRetrySpanMs: 500 });
    server.faults.stalled = true;
    await assert.rejects(store.head(), { code: 'log-unavailable' });
    server.faults.stalled = false;
    await store.head();
    await server.stop();
    // The first call after the stop gets gRPC's own error; later calls get the client's.
    for (let call = 0; call < 3; call += 1) await assert.rejects(store.head(), { code: 'log-unavailable' });
  });

  test('do no harm when they fail after they were given up', { timeout: 30_000 }, async (context) => {
    const { server, store } = await openLog(context, { readRetrySpanMs: 1 });
    await store.head();
    const late = Promise.withResolvers<void>();
    server.faults.read = () => late.promise;
    await assert.rejects(store.head(), { code: 'log-unavailable' });
    late.reject({ code: 13, details: 'Internal' });
    server.faults.read = null;
    await store.head();
  });

  test('of the head are shared by all calls at the same moment', async (context) => {
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

  test('are never answered by a node that no longer leads', { timeout: 30_000 }, async (context) => {
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

  test('of a cluster find its leader by gossip', { timeout: 30_000 }, async (context) => {
    const leader = await openServer(context);
    const follower = await openServer(context);
    follower.faults.leaderPort = leader.port;
    const { store } = openStore(context, `esdb+discover://127.0.0.1:${follower.port}?tls=false`);
    const stream = newStream();
    await store.append({ stream, expected: 'none', events: [newEvent()] });
    assert.ok(leader.log.stream(stream) !== null);
  });

  test('fail on servers that cannot batch appends, which send no positions either', async (context) => {
    const server = await openServer(context, { batches: false });
    const { store } = openStore(context, server.url);
    await assert.rejects(store.head(), { code: 'log-unavailable', message: /before 22\.6/ });
  });
});

describe('events in EventStoreDB', () => {
  test('are the bytes of their canonical JSON, marked as JSON where the client writes exactly those', async (context) => {
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
      append_count: 2,
      append_index: 0,
      actor: { kind: 'system', id: 'test' },
      causation_id: null,
      is_record: true,
      occurred_at: plain.occurredAt,
      request_id: 'request-1',
      source_address_ref: null,
      version: 1,
    });
  });

  test('are refused before the client gets them when they hold a BigInt or undefined', async (context) => {
    const { server, store } = await openLog(context);
    for (const value of [1n, undefined, Number.NaN, () => 1]) {
      const events = [newEvent({ data: { value } as never })];
      const append = store.append({ stream: newStream(), expected: 'none', events });
      await assert.rejects(append, { code: 'invalid-event' });
    }
    assert.equal(server.counts.appends, 0);
  });

  test('are refused before they are sent when EventStoreDB would count them as too large', async (context) => {
    const { server, store } = await openLog(context);
    // EventStoreDB counts a type name twice: the append is below the port's own limit and beyond EventStoreDB's.
    const note = 'x'.repeat(1024 * 1024 - 2_000);
    const events = [newEvent({ type: 'T'.repeat(1_500), data: { note } })];
    await assert.rejects(store.append({ stream: newStream(), expected: 'none', events }), { code: 'append-too-large' });
    assert.equal(server.counts.appends, 0);
  });
});

describe('the log of one process', () => {
  test('cannot be opened twice at the same time', async (context) => {
    const { server, store } = await openLog(context);
    assert.throws(() => openStore(context, server.url), /has an EventStoreDB log open/);
    await store.close();
    const { store: next } = openStore(context, server.url);
    await next.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
  });
});
