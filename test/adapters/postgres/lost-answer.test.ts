/** Appends whose answer is lost: the store retries them with the same ids, and they are committed once. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { type PostgresProxy, startPostgresProxy } from '../../support/postgres-proxy.ts';
import type { Link } from '../../support/tcp-proxy.ts';
import { openClient, openDatabase, openStore } from './open-store.ts';

async function openProxy(context: Ending): Promise<{ direct: string; proxy: PostgresProxy }> {
  const direct = await openDatabase(context);
  const proxy = await startPostgresProxy(direct);
  cleanUp(context, () => proxy.close());
  return { direct, proxy };
}

const isAppend = (data: Buffer) => data.includes('append_events(');

describe('an append without an answer', () => {
  test('that was committed is recognised by the retry and returns its result', async (context) => {
    const { direct, proxy } = await openProxy(context);
    const { store } = openStore(context, proxy.connectionString);
    let lost = 0;
    let sending = false;
    proxy.onQuery = (data) => {
      sending ||= isAppend(data) && lost === 0;
      return data;
    };
    proxy.onAnswer = (data, link) => {
      if (!sending) return data;
      // PostgreSQL answers only after the commit.
      sending = false;
      lost += 1;
      link.cut();
      return null;
    };
    const [stream, other] = [newStream(), newStream()];
    const events = [newEvent(), newEvent()];
    const results = await Promise.all([
      store.append({ stream, expected: 'none', events }),
      store.append({ stream: other, expected: 7, events: [newEvent()] }),
    ]);
    assert.equal(lost, 1);
    const client = await openClient(context, direct);
    const { rows } = await client.query('SELECT event_id, position, xmin FROM events ORDER BY position');
    assert.deepEqual(
      rows.map((row) => row.event_id),
      events.map((event) => event.id),
    );
    assert.equal(new Set(rows.map((row) => row.xmin)).size, 1);
    const [appended, conflict] = results;
    assert.deepEqual(appended, { outcome: 'appended', revision: 1, position: 2n });
    assert.deepEqual(conflict, { outcome: 'conflict', stream: other, actual: 'none' });
  });

  test('that never reached the server is sent again', async (context) => {
    const { proxy } = await openProxy(context);
    const { store } = openStore(context, proxy.connectionString);
    let cuts = 0;
    proxy.onQuery = (data, link) => {
      if (!isAppend(data) || cuts === 3) return data;
      cuts += 1;
      link.cut();
      return null;
    };
    const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.deepEqual(result, { outcome: 'appended', revision: 0, position: 1n });
    assert.equal(cuts, 3);
  });

  test('for longer than it is retried has an unknown outcome, and the same call succeeds later', async (context) => {
    const { proxy } = await openProxy(context);
    const { store } = openStore(context, proxy.connectionString, { appendRetrySpanMs: 300 });
    const { head } = store;
    await head();
    let silent = true;
    let sending = false;
    proxy.onQuery = (data) => {
      sending ||= isAppend(data);
      return data;
    };
    proxy.onAnswer = (data, link) => {
      if (!silent || !sending) return data;
      link.cut();
      return null;
    };
    const request = { stream: newStream(), expected: 'none', events: [newEvent()] } as const;
    await assert.rejects(store.append(request), { code: 'append-outcome-unknown' });
    silent = false;
    assert.deepEqual(await store.append(request), { outcome: 'appended', revision: 0, position: 1n });
  });

  test('because there is no server at all fails as unavailable', async (context) => {
    const { proxy } = await openProxy(context);
    const { store } = openStore(context, proxy.connectionString, { appendRetrySpanMs: 300, readRetrySpanMs: 300 });
    await proxy.close();
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await assert.rejects(append, { code: 'log-unavailable' });
    await assert.rejects(store.head(), { code: 'log-unavailable' });
    await assert.rejects(store.readAll(0n as never, 1), { code: 'log-unavailable' });
  });

  test('does not delay another node, wherever its client froze', async (context) => {
    const { direct, proxy } = await openProxy(context);
    const { store: frozen } = openStore(context, proxy.connectionString, { appendRetrySpanMs: 1 });
    // This store does not retry, so an append that had to wait for the other's lock to time out would fail.
    const { store: other } = openStore(context, direct, { appendRetrySpanMs: 1 });
    await frozen.head();
    // PostgreSQL gets all of the call but its last byte, then nothing more: it must not have started the call.
    const held: Buffer[] = [];
    let frozenLink: Link | null = null;
    proxy.onQuery = (data, link) => {
      if (!isAppend(data) && held.length === 0) return data;
      held.push(data);
      frozenLink = link;
      return null;
    };
    const lost = frozen.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    const ended = assert.rejects(lost, { code: 'append-outcome-unknown' });
    await sleep(200);
    assert.ok(frozenLink !== null);
    const stalled: Link = frozenLink;
    stalled.send(Buffer.concat(held).subarray(0, -1));
    await sleep(200);
    const result = await other.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.deepEqual(result, { outcome: 'appended', revision: 0, position: 1n });
    proxy.cutAll();
    await ended;
  });
});
