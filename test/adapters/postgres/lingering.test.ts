/**
 * Subscriptions that linger: several appends in one batch, and no delay for whoever waits. The ticks are the test's.
 */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import type { Anchor, Window } from '../../../adapters/postgres/log-reader.ts';
import { startSubscription } from '../../../adapters/postgres/subscription.ts';
import type { Ticks } from '../../../adapters/postgres/ticks.ts';
import { LOG_START, type LogPosition, type RecordedEvent } from '../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { collect, lastOf, newEvent, newStream } from '../../support/events.ts';
import { keepLog } from '../../support/log.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { eventually } from '../../support/processes.ts';
import { openClient, openDatabase, openStore } from './open-store.ts';

/** Ticks at the moments that the test chooses. */
function handTicks(): Ticks & { readonly tick: () => Promise<void>; readonly waiting: () => number } {
  const waiting = new Set<() => void>();
  return {
    next: (onTick) => {
      waiting.add(onTick);
      return () => waiting.delete(onTick);
    },
    tick: async () => {
      const due = [...waiting];
      waiting.clear();
      for (const onTick of due) onTick();
      await settle();
    },
    waiting: () => waiting.size,
  };
}

/** Time for whatever is not waiting for a tick. */
async function settle(): Promise<void> {
  for (let n = 0; n < 5; n += 1) await nextTurn();
}

async function start(context: TestContext, how: { readonly lingers: boolean }) {
  const store = createMemoryEventStore();
  const [polls, lingering] = [handTicks(), handTicks()];
  const batches: (readonly LogPosition[])[] = [];
  let reads = 0;
  const readWindow = async (from: Anchor): Promise<Window> => {
    reads += 1;
    const events = await store.readAll(from.position, 100);
    const last = events.at(-1);
    const end = last === undefined ? from : { position: last.position, id: last.id };
    return { events, end, lastRecord: null, reachedEnd: true, isOwn: false, diverged: false };
  };
  const subscription = startSubscription(
    { readWindow, polls, lingering, log: keepLog() },
    {
      after: LOG_START,
      ...how,
      onEvents: (events) => void batches.push(events.map(({ position }) => position)),
    },
  );
  cleanUp(context, () => subscription.close());
  await settle();
  return {
    subscription,
    polls,
    lingering,
    batches,
    reads: () => reads,
    /** Appends an event, and tells the subscription of it. */
    append: async (): Promise<LogPosition> => {
      const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      assert.ok(result.outcome === 'appended');
      subscription.hear(result.position);
      await settle();
      return result.position;
    },
  };
}

describe('A subscription that lingers', () => {
  test('does so over appends of its own process, and not over those of another', async (context) => {
    const connectionString = await openDatabase(context);
    const { store: own } = openStore(context, connectionString, { lingerMs: 5_000 });
    const { store: other } = openStore(context, connectionString);
    const batches: (readonly LogPosition[])[] = [];
    const onEvents = (events: readonly RecordedEvent[]): void => {
      if (events.length > 0) batches.push(events.map(({ position }) => position));
    };
    own.subscribe({ after: LOG_START, lingers: true, onEvents });
    const witness = collect(own, LOG_START);
    const append = async (store: EventStore): Promise<LogPosition> => {
      const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      assert.ok(result.outcome === 'appended');
      await witness.until(() => lastOf(witness.positions) === result.position);
      return result.position;
    };
    const client = await openClient(context, connectionString);
    const listening = `SELECT FROM pg_stat_activity WHERE query = 'LISTEN strata_events' AND state = 'idle'`;
    await eventually('the process listens', async () => (await client.query(listening)).rowCount !== 0);
    const first = await append(other);
    await eventually('the event of the other process arrives', () => lastOf(batches.flat()) === first);
    batches.length = 0;
    const begun = performance.now();
    const lingered = [await append(own), await append(own), await append(own)];
    // Its own notifications end nothing either.
    await sleep(300);
    assert.deepEqual(batches, []);
    const last = await append(other);
    await eventually('the lingering ends', () => batches.length > 0);
    assert.deepEqual(batches.flat().slice(0, 3), lingered);
    await eventually('the event of the other process arrives', () => lastOf(batches.flat()) === last);
    assert.ok(performance.now() - begun < 4_500);
  });

  test('gets the events of several appends as one batch, at the tick after the first', async (context) => {
    const { append, batches, lingering, polls, reads } = await start(context, { lingers: true });
    await append();
    await append();
    await append();
    assert.deepEqual([batches, reads(), lingering.waiting(), polls.waiting()], [[], 1, 1, 0]);
    await lingering.tick();
    assert.deepEqual([batches, reads(), lingering.waiting(), polls.waiting()], [[[1n, 2n, 3n]], 2, 0, 1]);
    await append();
    await lingering.tick();
    assert.deepEqual(batches, [[1n, 2n, 3n], [4n]]);
  });

  test('reads immediately when it is pulled, before and after it heard of the position', async (context) => {
    const { append, batches, lingering, subscription } = await start(context, { lingers: true });
    const first = await append();
    subscription.pull(first);
    await settle();
    assert.deepEqual([batches, lingering.waiting()], [[[1n]], 0]);
    subscription.pull(2n as LogPosition);
    await settle();
    await append();
    subscription.pull(2n as LogPosition);
    await settle();
    assert.deepEqual([batches, lingering.waiting()], [[[1n], [2n]], 0]);
  });

  test('does not read for a pull to what it has passed, and lingers on', async (context) => {
    const { append, batches, lingering, reads, subscription } = await start(context, { lingers: true });
    const first = await append();
    await lingering.tick();
    subscription.pull(first);
    await settle();
    assert.equal(reads(), 2);
    await append();
    subscription.pull(first);
    await settle();
    assert.deepEqual([batches, lingering.waiting()], [[[1n]], 1]);
  });

  test('ends immediately when it is closed', async (context) => {
    const { append, batches, lingering, subscription } = await start(context, { lingers: true });
    await append();
    await subscription.close();
    assert.deepEqual([batches, lingering.waiting()], [[], 0]);
  });
});

test('A subscription that does not linger gets each append immediately', async (context) => {
  const { append, batches, lingering } = await start(context, { lingers: false });
  await append();
  await append();
  assert.deepEqual([batches, lingering.waiting()], [[[1n], [2n]], 0]);
});
