/** A node whose clock differs from PostgreSQL's appends nothing, and appends again as soon as its clock is right. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { createClockWatch, judgeClock } from '../../../adapters/postgres/clock-difference.ts';
import { CLOCK_DIFFERENCE_MS_MAX } from '../../../adapters/postgres/limits.ts';
import { isOutage } from '../../../core/runtime/is-outage.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { keepLog } from '../../support/log.ts';
import { startPostgresProxy } from '../../support/postgres-proxy.ts';
import { openDatabase, openStore } from './open-store.ts';

const LIMIT = CLOCK_DIFFERENCE_MS_MAX;
const HOUR_MS = 3_600_000;

describe('The clocks', () => {
  test(`agree at a difference of ${LIMIT} ms, and differ at one more, either way`, () => {
    for (const sign of [1, -1]) {
      const exact = (ms: number) => judgeClock({ atLeastMs: sign * ms, atMostMs: sign * ms });
      assert.equal(exact(LIMIT), 'agrees');
      assert.equal(exact(LIMIT + 1), 'differs');
    }
  });

  test('may agree or differ while the time of the answer could explain the difference', () => {
    assert.equal(judgeClock({ atLeastMs: 10, atMostMs: LIMIT + 1 }), 'unsure');
    assert.equal(judgeClock({ atLeastMs: -LIMIT - 1, atMostMs: 10 }), 'unsure');
  });

  test('are logged once when they begin to differ, and once when they agree again', () => {
    const log = keepLog();
    let aheadMs = HOUR_MS;
    const watch = createClockWatch({ nowMs: () => Date.now() + aheadMs, log });
    const ask = () => watch.read().answered(Date.now());
    for (const ahead of [HOUR_MS, HOUR_MS, 0, 0]) {
      aheadMs = ahead;
      ask();
      assert.equal(watch.differs(), ahead !== 0);
    }
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['error', 'info'],
    );
    assert.deepEqual(log.lines[0]?.fields, { databaseAheadSeconds: -3_600 });
  });
});

test('The clocks differ by nothing before an answer, nor for what a slow answer could explain', async () => {
  let aheadMs = 0;
  const watch = createClockWatch({ nowMs: () => 1_000_000 + aheadMs, log: keepLog() });
  assert.ok(Number.isNaN(watch.secondsAhead()));
  const slow = watch.read();
  await sleep(20);
  slow.answered(1_000_010);
  assert.equal(watch.secondsAhead(), 0);
  aheadMs = 5_000;
  watch.read().answered(1_000_000);
  assert.equal(watch.secondsAhead(), -5);
});

describe('An append', () => {
  test('by a clock 40 days ahead or behind is refused with what to do, and stores nothing', async (context) => {
    for (const [days, words] of [
      [40, /is 3456000 s ahead of PostgreSQL's: .* set right/],
      [-40, /is 3456000 s behind PostgreSQL's/],
    ] as const) {
      const { store } = openStore(context, await openDatabase(context), {
        nowMs: () => Date.now() + days * 24 * HOUR_MS,
      });
      const request = { stream: newStream(), expected: 'none', events: [newEvent()] } as const;
      await assert.rejects(store.append(request), (error) => {
        assert.ok(error instanceof Error && 'code' in error);
        assert.equal(error.code, 'clock-differs');
        assert.match(error.message, words);
        assert.ok(isOutage(error), 'policies try again');
        return true;
      });
      assert.equal(await store.head(), 0n);
      assert.ok(store.clockDiffers());
    }
  });

  test('follows each step of the clock immediately, and takes no further round trip for that', async (context) => {
    const proxy = await startPostgresProxy(await openDatabase(context));
    cleanUp(context, () => proxy.close());
    let sent = 0;
    proxy.onQuery = (data) => {
      sent += 1;
      return data;
    };
    let aheadMs = 0;
    const { store } = openStore(context, proxy.connectionString, { nowMs: () => Date.now() + aheadMs });
    const append = () => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await append();
    const before = sent;
    await append();
    assert.equal(sent, before + 1);
    for (const ahead of [LIMIT + 5_000, -LIMIT - 5_000]) {
      aheadMs = ahead;
      await assert.rejects(append(), { code: 'clock-differs' });
      aheadMs = 0;
      assert.equal((await append()).outcome, 'appended');
    }
    for (const ahead of [LIMIT - 5_000, 5_000 - LIMIT]) {
      aheadMs = ahead;
      assert.equal((await append()).outcome, 'appended');
    }
  });

  test('whose answer was lost before the clock was set may have been committed, and says so', async (context) => {
    const proxy = await startPostgresProxy(await openDatabase(context));
    cleanUp(context, () => proxy.close());
    let aheadMs = 0;
    const { store } = openStore(context, proxy.connectionString, { nowMs: () => Date.now() + aheadMs });
    await store.head();
    proxy.onQuery = (data, link) => {
      if (aheadMs > 0 || !data.includes('append_events(')) return data;
      aheadMs = HOUR_MS;
      link.cut();
      return null;
    };
    const append = store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    await assert.rejects(append, { code: 'append-outcome-unknown' });
  });

  test('that was long under way shows no difference, and is sent again', async (context) => {
    const proxy = await startPostgresProxy(await openDatabase(context));
    cleanUp(context, () => proxy.close());
    // This node's clock is within the limit, but not by as much as the statement waits on its way.
    const { store, log } = openStore(context, proxy.connectionString, { nowMs: () => Date.now() - LIMIT + 100 });
    await store.head();
    let held = 0;
    proxy.onQuery = (data, link) => {
      if (!data.includes('database_ms') || held === 2) return data;
      held += 1;
      setTimeout(() => link.send(data), 300);
      return null;
    };
    await store.head();
    assert.equal(held, 1);
    const appended = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    assert.deepEqual(appended, { outcome: 'appended', revision: 0, position: 1n });
    assert.equal(held, 2);
    assert.equal(store.clockDiffers(), false);
    assert.deepEqual(log.lines, []);
  });
});

describe('A read', () => {
  test('by a clock that differs is answered, and shows the difference', async (context) => {
    let aheadMs = HOUR_MS;
    const { store } = openStore(context, await openDatabase(context), { nowMs: () => Date.now() + aheadMs });
    assert.equal(await store.head(), 0n);
    assert.equal(store.clockDiffers(), true);
    aheadMs = 0;
    await store.head();
    assert.equal(store.clockDiffers(), false);
  });
});
