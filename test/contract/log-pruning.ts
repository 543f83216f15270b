/** Removing operational streams from a log: they go whole, after the retention, and nothing else ever does. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { digest } from '../../adapters/node/digest.ts';
import { uuids } from '../../adapters/node/ids.ts';
import { LOG_START, type NewEvent, type StreamName, streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS } from '../../core/kernel/limits.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { LogPruning } from '../../core/ports/log-pruning.ts';
import { NEWEST_FORMS } from '../../core/ports/running-processes.ts';
import { exportLog } from '../../core/use-cases/log-files/export-log.ts';
import { importLog } from '../../core/use-cases/log-files/import-log.ts';
import type { FileLine } from '../../core/use-cases/log-files/log-file.ts';
import { recordUsage } from '../../core/use-cases/metering/record-usage.ts';
import { pruneStreams } from '../../core/use-cases/sweeping/prune-streams.ts';
import { collect, newAccount, newEvent, newId, newStream } from '../support/events.ts';
import { createMemoryPolicyMarks } from '../support/memory/delivery-store.ts';
import { createMemoryEventStore } from '../support/memory/event-store.ts';
import { createTestClock } from '../support/test-clock.ts';

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
const RETENTION_MS = 30 * DAY_MS;
const DELIVERED = ['WebhookDeliveryRequested', 'WebhookDeliveryAttempted', 'WebhookDeliverySucceeded'];
const NEVER = { aborted: false };

interface PrunableLog {
  readonly store: EventStore;
  readonly pruning: LogPruning;
}

type OpenLog = (context: TestContext) => Promise<PrunableLog>;

/** Declares the suite; `open` returns a new, empty log for each test. */
export function logPruningContract(adapter: string, open: OpenLog): void {
  describe(`pruning a stream on ${adapter}`, () => streamContract(open));
  describe(`the sweep of operational streams on ${adapter}`, () => sweepContract(open));
}

async function openLog(context: TestContext, open: OpenLog) {
  const { store, pruning } = await open(context);
  const clock = createTestClock();
  const marks = createMemoryPolicyMarks();
  let pruned = 0;
  const sweeping = {
    ...{ events: store, ids: uuids, written: NEWEST_FORMS, marks, clock, pruning, retentionMs: RETENTION_MS },
    failpoint: async () => undefined,
    onPruned: () => {
      pruned += 1;
    },
  };
  /** Each event is an append of its own. */
  const append = async (
    stream: StreamName,
    types: readonly string[],
    event: Partial<NewEvent> = { isRecord: false, accountId: null },
  ): Promise<void> => {
    const last = (await store.readStream(stream, { direction: 'backwards', limit: 1 }))[0]?.revision ?? -1;
    for (const [index, type] of types.entries()) {
      const expected = last + index < 0 ? 'none' : last + index;
      const events = [newEvent({ type, occurredAt: clock.now(), ...event })];
      assert.equal((await store.append({ stream, expected, events })).outcome, 'appended');
    }
  };
  const lengths = async (streams: readonly StreamName[]): Promise<readonly number[]> =>
    Promise.all(streams.map(async (one) => (await store.readStream(one, { direction: 'forwards', limit: 9 })).length));
  const sweep = async (): Promise<number> => {
    pruned = 0;
    await pruneStreams(sweeping, NEVER);
    return pruned;
  };
  return {
    ...{ store, clock, pruning, append, lengths, sweep },
    delivery: () => streamName('webhookDelivery', newId()),
    record: () => append(newStream(), ['ThingHappened'], { isRecord: true }),
    sum: () => recordUsage(sweeping, NEVER),
    /** Prunes as the server does. */
    prune: async () => {
      await recordUsage(sweeping, NEVER);
      return sweep();
    },
    later: (ms: number): Timestamp => plusMs(clock.now(), ms),
  };
}

function streamContract(open: OpenLog): void {
  test('removes it whole, and only at the revision that was read', async (context) => {
    const { append, delivery, record, pruning, lengths, later } = await openLog(context, open);
    const [one, other] = [delivery(), delivery()];
    for (const stream of [one, other]) await append(stream, DELIVERED);
    await record();
    assert.equal(await pruning.prune({ stream: one, lastRevision: 1 }, later(1)), false, 'it has grown');
    assert.equal(await pruning.prune({ stream: one, lastRevision: 2 }, later(0)), false, 'it is not older');
    assert.equal(await pruning.prune({ stream: one, lastRevision: 2 }, later(1)), true);
    assert.equal(await pruning.prune({ stream: one, lastRevision: 2 }, later(1)), false, 'it is gone');
    assert.deepEqual(await lengths([one, other]), [0, 3]);
  });

  test('waits for a record event behind it, so that the head never falls', async (context) => {
    const { store, append, delivery, record, pruning, lengths, later } = await openLog(context, open);
    await record();
    const stream = delivery();
    await append(stream, DELIVERED);
    const head = await store.head();
    assert.equal(await pruning.prune({ stream, lastRevision: 2 }, later(1)), false);
    await record();
    assert.equal(await pruning.prune({ stream, lastRevision: 2 }, later(1)), true);
    assert.deepEqual(await lengths([stream]), [0]);
    const after = await store.head();
    assert.ok(after > head);
    await record();
    assert.ok((await store.head()) > after, 'no position is used twice');
  });

  // The attack: a fault, or somebody with the rights of a server, lets a part of the record disappear.
  test('refuses streams of the record, and those that hold a record event', async (context) => {
    const { append, delivery, record, pruning, lengths, later } = await openLog(context, open);
    const repository = newStream('repository');
    await append(repository, ['RefsUpdated'], { isRecord: true });
    const mixed = delivery();
    await append(mixed, DELIVERED);
    await append(mixed, ['WebhookDeliverySucceeded'], { isRecord: true });
    await record();
    for (const stream of [repository, newStream('account'), 'usage-1' as StreamName]) {
      await assert.rejects(pruning.prune({ stream, lastRevision: 0 }, later(1)), /operational category/);
    }
    assert.equal(await pruning.prune({ stream: mixed, lastRevision: 3 }, later(1)), false);
    assert.deepEqual(await lengths([repository, mixed]), [1, 4]);
  });
}

function sweepContract(open: OpenLog): void {
  test('removes deliveries that ended, days of signing in and of errors of buckets after the retention, and nothing else', async (context) => {
    const { clock, append, delivery, record, prune, lengths } = await openLog(context, open);
    const [ended, pending, again, young] = [delivery(), delivery(), delivery(), delivery()];
    const day = streamName('signIn', `${newAccount()}-20261101`);
    const errors = streamName('bucketErrors', `${newId()}-20261101`);
    const streams = [ended, pending, again, day, errors, young];
    await record();
    for (const stream of [ended, again]) await append(stream, DELIVERED);
    await append(pending, DELIVERED.slice(0, 2));
    await append(day, ['SignedIn', 'SignInFailed']);
    await append(errors, ['BucketErrorRecorded']);
    clock.advance(RETENTION_MS - 1);
    assert.equal(await prune(), 0);
    await append(again, ['WebhookRedelivered']);
    await append(young, DELIVERED);
    await record();
    clock.advance(1);
    assert.equal(await prune(), 0, 'all of a stream must be older');
    clock.advance(1);
    assert.equal(await prune(), 3);
    assert.deepEqual(await lengths(streams), [0, 2, 4, 0, 0, 3]);
    await append(again, ['WebhookDeliverySucceeded']);
    await record();
    clock.advance(RETENTION_MS + 1);
    assert.equal(await prune(), 2, 'the one that was delivered again, and the young one');
    assert.deepEqual(await lengths(streams), [0, 2, 0, 0, 0, 0]);
  });

  test('goes on after it had to wait for a record event, and after a kill', async (context) => {
    const { clock, append, delivery, record, prune, lengths } = await openLog(context, open);
    const stream = delivery();
    await record();
    await append(stream, DELIVERED);
    clock.advance(RETENTION_MS + PENDING_DELIVERY_KEPT_MS);
    assert.equal(await prune(), 0);
    await record();
    assert.equal(await prune(), 1);
    assert.deepEqual(await lengths([stream]), [0]);
  });

  test('leaves a log that is exported and imported as it is', async (context) => {
    const { store, clock, append, delivery, record, prune } = await openLog(context, open);
    await record();
    const streams = [delivery(), delivery()];
    for (const stream of streams) await append(stream, DELIVERED);
    await record();
    clock.advance(RETENTION_MS + 1);
    await record();
    assert.equal(await prune(), 2);
    async function* lines(): AsyncGenerator<FileLine> {
      for await (const { text } of exportLog({ events: store, digest }, null)) {
        for (const line of text.trimEnd().split('\n')) yield { bytes: new TextEncoder().encode(line), ended: true };
      }
    }
    const target = createMemoryEventStore();
    const report = await importLog({ events: target, digest, begin: async () => undefined }, lines());
    assert.deepEqual([report.events, report.found], [3, 0]);
    const ids = async (log: Pick<typeof store, 'readAll'>) => (await log.readAll(LOG_START, 100)).map(({ id }) => id);
    assert.deepEqual(await ids(target), await ids(store));
    assert.equal((await ids(store)).length, 3);
  });

  test('removes a day of reads when it is summed and has passed the retention, not before', async (context) => {
    const { store, clock, append, record, sum, sweep, prune, lengths } = await openLog(context, open);
    const account = newAccount();
    const day = (node: string) => streamName('transfer', `${account}-${node}-${clock.now().slice(0, 10)}`);
    const read = async (stream: StreamName): Promise<void> => {
      const data = { minute: clock.now(), sent_bytes: 7, by_reader: [], details: null };
      await append(stream, ['TransferRecorded'], { isRecord: false, accountId: account, version: 2, data });
    };
    await record();
    const first = [day('a'), day('b')];
    for (const stream of [...first, ...first]) await read(stream);
    clock.advance(DAY_MS);
    await sum();
    const second = day('a');
    await read(second);
    const streams = [...first, second];
    clock.advance(RETENTION_MS - DAY_MS + HOUR_MS);
    assert.equal(await prune(), 0, 'the ledger still shows this day by the minute');
    clock.advance(DAY_MS - HOUR_MS);
    assert.equal(await prune(), 2);
    assert.deepEqual(await lengths(streams), [0, 0, 1]);
    const { sums } = await usageOf(store, account);
    assert.deepEqual(sums, [28, 7]);
    const third = day('a');
    await read(third);
    await record();
    clock.advance(RETENTION_MS + DAY_MS);
    assert.equal(await sweep(), 1, 'no sum holds the third day');
    assert.deepEqual(await lengths([...streams, third]), [0, 0, 0, 1]);
    await sum();
    assert.equal(await sweep(), 1);
    assert.deepEqual((await usageOf(store, account)).sums, [28, 7, 7]);
  });

  // The policy of the sums has passed the event, since it names no account.
  test('keeps reads that no later sum of their account holds', async (context) => {
    const { clock, append, record, sum, sweep, lengths } = await openLog(context, open);
    const account: AccountId = newAccount();
    const stream = streamName('transfer', `${account}-node-20261121`);
    await record();
    const data = { minute: clock.now(), sent_bytes: 7, by_reader: [], details: null };
    await append(stream, ['TransferRecorded'], { isRecord: false, accountId: null, version: 2, data });
    await record();
    clock.advance(RETENTION_MS + DAY_MS);
    await sum();
    assert.equal(await sweep(), 0);
    assert.deepEqual(await lengths([stream]), [1]);
  });

  test('leaves nothing of a pruned stream to readers of the whole log and to subscriptions', async (context) => {
    const { store, clock, append, delivery, record, prune } = await openLog(context, open);
    await record();
    const streams = [delivery(), delivery()];
    for (const stream of streams) await append(stream, DELIVERED);
    await record();
    clock.advance(RETENTION_MS + 1);
    const young = delivery();
    await append(young, DELIVERED);
    assert.equal(await prune(), 2);
    const all = await store.readAll(LOG_START, 100);
    assert.deepEqual(
      all.map(({ stream }) => stream.split('-')[0]),
      ['repository', 'repository', ...DELIVERED.map(() => 'webhookDelivery')],
    );
    assert.deepEqual((await store.readAll(LOG_START, 2)).length, 2);
    const { subscription, events, positions, until } = collect(store, LOG_START);
    const head = await store.head();
    await until(() => (positions.at(-1) ?? LOG_START) >= head);
    await subscription.close();
    assert.deepEqual(
      events.map(({ id }) => id),
      all.map(({ id }) => id),
    );
  });
}

/** The bytes of each daily sum of an account. */
async function usageOf(store: EventStore, account: AccountId) {
  const found = await store.readStream(streamName('usage', account), { direction: 'forwards', limit: 100 });
  return {
    sums: found.flatMap(({ data }) => {
      const days = Array.isArray(data['transfer']) ? data['transfer'] : [];
      return days.map((day) => Number((day as { readonly sent_bytes?: unknown }).sent_bytes));
    }),
  };
}
