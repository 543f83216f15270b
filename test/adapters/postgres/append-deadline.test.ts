/** Appends whose deadline passes while they wait: on the way to PostgreSQL, nothing of them is sent any more. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { CLOCK_DIFFERENCE_MS_MAX } from '../../../adapters/postgres/limits.ts';
import { PUSH_COMMIT_SPAN_MS } from '../../../core/kernel/limits.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { startPostgresProxy } from '../../support/postgres-proxy.ts';
import { startPushing } from '../../support/pushing.ts';
import { branch, oid } from '../../support/repository-history.ts';
import { openDatabase, openStore } from './open-store.ts';

const isAppend = (data: Buffer): boolean => data.includes('append_events(');

async function openProxy(context: Ending) {
  const proxy = await startPostgresProxy(await openDatabase(context));
  cleanUp(context, () => proxy.close());
  return proxy;
}

/** Holds the next message to PostgreSQL that fits. Returns a promise of the function that passes it on. */
function holdNext(proxy: Awaited<ReturnType<typeof openProxy>>, fits: (data: Buffer) => boolean): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<() => void>();
  proxy.onQuery = (data, link) => {
    if (!fits(data)) return data;
    proxy.onQuery = (later) => later;
    resolve(() => link.send(data));
    return null;
  };
  return promise;
}

const plain = () => ({ stream: newStream(), expected: 'none', events: [newEvent()] }) as const;

async function assertEmpty(store: EventStore, stream: ReturnType<typeof newStream>): Promise<void> {
  assert.deepEqual(await store.readStream(stream, { direction: 'forwards', limit: 1 }), []);
}

describe('An append whose deadline passes', () => {
  test('while it waits behind others is not sent, and those that wait with it are appended', async (context) => {
    const proxy = await openProxy(context);
    const { store } = openStore(context, proxy.connectionString);
    await store.head();
    const held = holdNext(proxy, isAppend);
    const first = store.append(plain());
    const pass = await held;
    let late = false;
    const request = { ...plain(), isTooLate: () => late };
    const before = store.append(plain());
    const refused = assert.rejects(store.append(request), { code: 'append-too-late' });
    const after = store.append(plain());
    late = true;
    pass();
    for (const appended of await Promise.all([first, before, after])) assert.equal(appended.outcome, 'appended');
    await refused;
    await assertEmpty(store, request.stream);
  });

  test('while it waits for a connection is not sent', async (context) => {
    const proxy = await openProxy(context);
    const { store } = openStore(context, proxy.connectionString);
    const held = holdNext(proxy, () => true);
    let late = false;
    const request = { ...plain(), isTooLate: () => late };
    const appending = store.append(request);
    appending.catch(() => undefined);
    const pass = await held;
    late = true;
    pass();
    await assert.rejects(appending, { code: 'append-too-late' });
    await assertEmpty(store, request.stream);
  });

  test('after it was sent and before an answer came is not sent again, and its outcome is unknown', async (context) => {
    const proxy = await openProxy(context);
    const { store } = openStore(context, proxy.connectionString);
    await store.head();
    let sent = 0;
    proxy.onQuery = (data, link) => {
      if (!isAppend(data)) return data;
      sent += 1;
      link.cut();
      return null;
    };
    const request = { ...plain(), isTooLate: () => sent > 0 };
    await assert.rejects(store.append(request), { code: 'append-outcome-unknown' });
    assert.equal(sent, 1);
    await assertEmpty(store, request.stream);
  });

  test('while its message is on the way for longer than the clocks may differ stores nothing', async (context) => {
    const proxy = await openProxy(context);
    // In a real wait PostgreSQL's clock moves on by a minute; here this node's is nearly as far behind.
    const { store } = openStore(context, proxy.connectionString, {
      nowMs: () => Date.now() - CLOCK_DIFFERENCE_MS_MAX + 100,
    });
    await store.head();
    const held = holdNext(proxy, isAppend);
    let late = false;
    const request = { ...plain(), isTooLate: () => late };
    const appending = store.append(request);
    appending.catch(() => undefined);
    const pass = await held;
    late = true;
    await sleep(300);
    pass();
    await assert.rejects(appending, { code: 'append-too-late' });
    await assertEmpty(store, request.stream);
  });
});

test('A push whose append waits in the queue beyond the hour of its layer is refused, and its layer leaves', async (context) => {
  const proxy = await openProxy(context);
  const { store } = openStore(context, proxy.connectionString);
  const pushing = await startPushing({ log: store });
  const main = branch('main');
  let held: Promise<() => void> | null = null;
  pushing.onFailpoint = (point) => {
    if (point !== 'push-layer-stored') return;
    held = holdNext(proxy, isAppend);
    void store.append(plain());
  };
  pushing.log.on.append = async () => {
    pushing.log.on.append = undefined;
    const pass = await held;
    // The append that is held back keeps the queue until the push's own append is in it.
    setTimeout(() => {
      pushing.node.clock.advance(PUSH_COMMIT_SPAN_MS + 1);
      pass?.();
    }, 50);
  };
  const outcome = await pushing.push([{ ref: main, before: null, after: oid('a') }]);
  assert.deepEqual(outcome, { refused: { code: 'push-took-too-long' } });
  assert.deepEqual([await pushing.refs(), await pushing.layerKeys()], [{}, []]);
});
