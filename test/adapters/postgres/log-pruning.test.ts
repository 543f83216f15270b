/** Operational streams leave a log on PostgreSQL whole, after the retention, and nothing else ever does. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'vitest';
import { createPostgresPolicyMarks } from '../../../adapters/postgres/delivery-store.ts';
import { createPostgresLogPruning } from '../../../adapters/postgres/log-pruning.ts';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { digest } from '../../../adapters/node/digest.ts';
import { LOG_START, type StreamName, streamName } from '../../../core/kernel/envelope.ts';
import { plusMs, type Timestamp } from '../../../core/kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS } from '../../../core/kernel/limits.ts';
import { exportLog } from '../../../core/use-cases/log-files/export-log.ts';
import { importLog } from '../../../core/use-cases/log-files/import-log.ts';
import type { FileLine } from '../../../core/use-cases/log-files/log-file.ts';
import { pruneStreams } from '../../../core/use-cases/sweeping/prune-streams.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { newAccount, newEvent, newId, newStream } from '../../support/events.ts';
import { keepLog } from '../../support/log.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { openDatabase, openStore } from './open-store.ts';

const RETENTION_MS = 30 * 24 * 60 * 60_000;
const DELIVERED = ['WebhookDeliveryRequested', 'WebhookDeliveryAttempted', 'WebhookDeliverySucceeded'];

async function openLog(context: TestContext) {
  const connectionString = await openDatabase(context);
  const { store } = openStore(context, connectionString);
  const pool = createPool({ connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  const clock = createTestClock();
  const pruning = createPostgresLogPruning(pool);
  let pruned = 0;
  const sweeping = {
    ...{ events: store, marks: createPostgresPolicyMarks(pool), clock, pruning, retentionMs: RETENTION_MS },
    failpoint: async () => undefined,
    onPruned: () => {
      pruned += 1;
    },
  };
  /** Each event is an append of its own. */
  const append = async (stream: StreamName, types: readonly string[], isRecord = false): Promise<void> => {
    const last = (await store.readStream(stream, { direction: 'backwards', limit: 1 }))[0]?.revision ?? -1;
    for (const [index, type] of types.entries()) {
      const expected = last + index < 0 ? 'none' : last + index;
      const events = [newEvent({ type, isRecord, occurredAt: clock.now() })];
      assert.equal((await store.append({ stream, expected, events })).outcome, 'appended');
    }
  };
  const lengths = async (streams: readonly StreamName[]): Promise<readonly number[]> =>
    Promise.all(streams.map(async (one) => (await store.readStream(one, { direction: 'forwards', limit: 9 })).length));
  return {
    ...{ store, clock, pruning, append, lengths },
    delivery: () => streamName('webhookDelivery', newId()),
    record: () => append(newStream(), ['ThingHappened'], true),
    prune: async () => {
      pruned = 0;
      await pruneStreams(sweeping, { aborted: false });
      return pruned;
    },
    later: (ms: number): Timestamp => plusMs(clock.now(), ms),
  };
}

describe('Pruning a stream', () => {
  test('removes it whole, and only at the revision that was read', async (context) => {
    const { append, delivery, record, pruning, lengths, later } = await openLog(context);
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
    const { store, append, delivery, record, pruning, lengths, later } = await openLog(context);
    await record();
    const stream = delivery();
    await append(stream, DELIVERED);
    const head = await store.head();
    assert.equal(await pruning.prune({ stream, lastRevision: 2 }, later(1)), false);
    await record();
    assert.equal(await pruning.prune({ stream, lastRevision: 2 }, later(1)), true);
    assert.deepEqual([await lengths([stream]), await store.head()], [[0], head + 1n]);
    await record();
    assert.equal(await store.head(), head + 2n, 'no position is used twice');
  });

  // The attack: a fault, or somebody with the rights of a server, lets a part of the record disappear.
  test('refuses streams of the record, and those that hold a record event', async (context) => {
    const { append, delivery, record, pruning, lengths, later } = await openLog(context);
    const repository = newStream('repository');
    await append(repository, ['RefsUpdated'], true);
    const mixed = delivery();
    await append(mixed, DELIVERED);
    await append(mixed, ['WebhookDeliverySucceeded'], true);
    await record();
    for (const stream of [repository, newStream('account'), 'usage-1' as StreamName]) {
      await assert.rejects(pruning.prune({ stream, lastRevision: 0 }, later(1)), /operational category/);
    }
    assert.equal(await pruning.prune({ stream: mixed, lastRevision: 3 }, later(1)), false);
    assert.deepEqual(await lengths([repository, mixed]), [1, 4]);
  });
});

describe('The sweep of operational streams', () => {
  test('removes deliveries that ended and days of signing in after the retention, and nothing else', async (context) => {
    const { clock, append, delivery, record, prune, lengths } = await openLog(context);
    const [ended, pending, again, young] = [delivery(), delivery(), delivery(), delivery()];
    const day = streamName('signIn', `${newAccount()}-20261101`);
    const errors = streamName('bucketErrors', `${newId()}-20261101`);
    const streams = [ended, pending, again, day, errors, young];
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
    assert.equal(await prune(), 2);
    assert.deepEqual(await lengths(streams), [0, 2, 4, 0, 1, 3]);
    await append(again, ['WebhookDeliverySucceeded']);
    await record();
    clock.advance(RETENTION_MS + 1);
    assert.equal(await prune(), 2, 'the one that was delivered again, and the young one');
    assert.deepEqual(await lengths(streams), [0, 2, 0, 0, 1, 0]);
  });

  test('goes on after it had to wait for a record event, and after a kill', async (context) => {
    const { clock, append, delivery, record, prune, lengths } = await openLog(context);
    const stream = delivery();
    await append(stream, DELIVERED);
    clock.advance(RETENTION_MS + PENDING_DELIVERY_KEPT_MS);
    assert.equal(await prune(), 0);
    await record();
    assert.equal(await prune(), 1);
    assert.deepEqual(await lengths([stream]), [0]);
  });

  test('leaves a log that is exported and imported as it is', async (context) => {
    const { store, clock, append, delivery, record, prune } = await openLog(context);
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
  });
});
