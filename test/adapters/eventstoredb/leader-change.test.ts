/** A leader that stops leading, or freezes, while the adapter waits for its answers. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { cleanUp } from '../../support/cleanup.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { openServer, openStore } from '../../support/eventstoredb/open-log.ts';
import { startProtocolServerProcess } from '../../support/eventstoredb/process.ts';
import type { ProtocolServer } from '../../support/eventstoredb/protocol-server.ts';
import { eventually } from '../../support/processes.ts';

const newAppend = () => ({ stream: newStream(), expected: 'none', events: [newEvent()] }) as const;
const received = (server: ProtocolServer, appends: number) =>
  eventually('the append arrives', async () => server.counts.appends >= appends);

describe('a leader of EventStoreDB that another node replaces', () => {
  test('does not end the process when it ends its stream of appends late', { timeout: 20_000 }, async (context) => {
    const [first, second] = [await openServer(context), await openServer(context)];
    const { store } = openStore(context, first.url);
    await store.append(newAppend());
    first.faults.append = () => 'stall';
    const unanswered = newAppend();
    const old = store.append(unanswered);
    await received(first, 2);
    first.faults.leaderPort = second.port;
    await store.head();
    let faults = 0;
    second.faults.append = () => (faults++ === 0 ? 'answer-late' : null);
    const answeredLate = newAppend();
    const late = store.append(answeredLate);
    await received(second, 1);
    await first.stop();
    assert.deepEqual([(await old).outcome, (await late).outcome], ['appended', 'appended']);
    // EventStoreDB's client throws here what nobody can catch, if the late answer finds its append removed.
    await sleep(1_200);
    for (const { stream } of [unanswered, answeredLate]) assert.equal(second.log.stream(stream)?.length, 1);
  });
});

/** A frozen process keeps its connections, accepts more, and answers nothing. */
describe('a leader of EventStoreDB that freezes', () => {
  test('is left for the one that the cluster elects, before reads fail', { timeout: 60_000 }, async (context) => {
    const first = await startProtocolServerProcess();
    cleanUp(context, first.stop);
    const second = await openServer(context);
    second.faults.leaderPort = first.port;
    const cluster = `esdb://127.0.0.1:${first.port},127.0.0.1:${second.port}?tls=false`;
    const { store } = openStore(context, cluster);
    await store.append(newAppend());
    first.freeze();
    const request = newAppend();
    // A read fails after 5 s without an answer.
    const [read, append] = [store.readStream(newStream(), { direction: 'forwards', limit: 1 }), store.append(request)];
    await sleep(2_000);
    second.faults.leaderPort = null;
    assert.deepEqual(await read, []);
    assert.equal((await append).outcome, 'appended');
    assert.equal(second.log.stream(request.stream)?.length, 1);
  });

  test('finds an append once that it was sent before, between and after', { timeout: 60_000 }, async (context) => {
    const server = await startProtocolServerProcess();
    cleanUp(context, server.stop);
    const { store, log } = openStore(context, server.address);
    await store.head();
    server.freeze();
    const request = { stream: newStream(), expected: 'none', events: [newEvent(), newEvent()] } as const;
    const append = store.append(request);
    await sleep(4_000);
    server.thaw();
    assert.equal((await append).outcome, 'appended');
    const stored = await store.readStream(request.stream, { direction: 'forwards', limit: 10 });
    assert.deepEqual(
      stored.map(({ id }) => id),
      request.events.map(({ id }) => id),
    );
    assert.ok(log.lines.some(({ fields }) => JSON.stringify(fields).includes('it has fallen silent')));
  });

  test('is not given up while it answers anything', { timeout: 60_000 }, async (context) => {
    const server = await openServer(context);
    const { store, log } = openStore(context, server.url, { appendAttemptSpanMs: 3_500 });
    await store.head();
    server.faults.append = () => 'stall';
    const append = store.append(newAppend());
    await sleep(3_000);
    assert.deepEqual(log.lines, []);
    server.faults.append = null;
    assert.equal((await append).outcome, 'appended');
  });
});
