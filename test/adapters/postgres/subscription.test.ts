/** How a subscription reads events: in bounded batches, seldom while nothing happens, and without notifications too. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { collect, lastOf, newEvent, newStream } from '../../support/events.ts';
import { startPostgresProxy } from '../../support/postgres-proxy.ts';
import { openDatabase, openStore } from './open-store.ts';

const MIB = 1024 * 1024;

describe('a subscription', () => {
  test('that is far behind receives large events in batches of bounded size', async (context) => {
    const { store } = openStore(context, await openDatabase(context));
    const data = { padding: 'x'.repeat(MIB - 2_000) };
    for (let n = 0; n < 40; n++) {
      await store.append({ stream: newStream('layer'), expected: 'none', events: [newEvent({ data })] });
      await store.append({ stream: newStream('account'), expected: 'none', events: [newEvent()] });
    }
    for (const categories of [undefined, ['layer'], ['account']]) {
      const sizes: number[] = [];
      let count = 0;
      await new Promise<void>((resolve) => {
        const subscription = store.subscribe({
          after: LOG_START,
          ...(categories === undefined ? {} : { categories }),
          onEvents: (events, position) => {
            count += events.length;
            sizes.push(events.reduce((size, event) => size + JSON.stringify(event.data).length, 0));
            if (position === 80n) resolve(void subscription.close());
          },
        });
      });
      assert.equal(count, categories === undefined ? 80 : 40);
      // A batch ends with the event that reaches the bound.
      for (const size of sizes) assert.ok(size <= 17 * MIB, `${size} bytes in a batch`);
      if (categories?.[0] === 'account')
        assert.equal(sizes.length, 1, 'events that the filter leaves out do not count');
    }
  });

  test('gets what this node appends when the caller of the append has gone on with the answer', async (context) => {
    const proxy = await startPostgresProxy(await openDatabase(context));
    cleanUp(context, () => proxy.close());
    const { store } = openStore(context, proxy.connectionString);
    // A notification of the append may arrive before its answer.
    proxy.onAnswer = (data) => (data.includes('strata_events') ? null : data);
    const order: string[] = [];
    const live = Promise.withResolvers<void>();
    const done = Promise.withResolvers<void>();
    const subscription = store.subscribe({
      after: LOG_START,
      onEvents: () => {
        order.push('delivered');
        if (order.length === 1) live.resolve();
        else done.resolve();
      },
    });
    const append = () => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await append();
    await live.promise;
    await append();
    // A caller may go on this long without waiting for anything outside of the process.
    for (let n = 0; n < 50; n += 1) await Promise.resolve();
    order.push('answered');
    await done.promise;
    assert.deepEqual(order, ['delivered', 'answered', 'delivered']);
    await subscription.close();
  });

  test('of a store that is closed while it starts to listen ends without a log line', async (context) => {
    const proxy = await startPostgresProxy(await openDatabase(context));
    cleanUp(context, () => proxy.close());
    const listening = new Promise<void>((resolve) => {
      proxy.onQuery = (data) => {
        if (!data.includes('LISTEN')) return data;
        resolve();
        return null;
      };
    });
    const { store, log } = openStore(context, proxy.connectionString);
    collect(store, LOG_START);
    await listening;
    await store.close();
    assert.deepEqual(log.lines, []);
  });

  test('to a rare category skips many other events at a time', async (context) => {
    const { store } = openStore(context, await openDatabase(context));
    const rare = newStream('account');
    await Promise.all(
      Array.from({ length: 25 }, () =>
        store.append({ stream: newStream(), expected: 'none', events: Array.from({ length: 900 }, () => newEvent()) }),
      ),
    );
    await store.append({ stream: rare, expected: 'none', events: [newEvent()] });
    const filtered = collect(store, LOG_START, ['account']);
    await filtered.until(() => filtered.events.length === 1);
    assert.equal(filtered.events[0]?.position, 22_501n);
    // 10,000 at a time, and what completes the append of the last.
    assert.deepEqual(filtered.positions, [0n, 10_800n, 21_600n, 22_501n]);
  });

  test('polls seldom while nothing happens, and sees events even if no notification arrives', async (context) => {
    const direct = await openDatabase(context);
    const proxy = await startPostgresProxy(direct);
    cleanUp(context, () => proxy.close());
    const { store } = openStore(context, proxy.connectionString);
    let reads = 0;
    proxy.onQuery = (data) => {
      if (data.includes('log-read-window')) reads += 1;
      return data;
    };
    // The proxy drops each NotificationResponse, and any bytes that arrive with it.
    proxy.onAnswer = (data) => (data.includes('strata_events') ? null : data);
    const live = collect(store, LOG_START);
    // All of a node's subscriptions poll together, so ten others cost no read of their own.
    for (let n = 0; n < 10; n++) {
      await sleep(20);
      collect(store, LOG_START, [`category${n}`]);
    }
    await sleep(700);
    reads = 0;
    await sleep(1_200);
    assert.ok(reads > 0 && reads <= 4, `${reads} reads`);
    const { store: other } = openStore(context, direct);
    const result = await other.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.ok(result.outcome === 'appended');
    await live.until(() => lastOf(live.positions) === result.position);
  });
});
