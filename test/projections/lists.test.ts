/**
 * What the contract of the read models (test/contract/read-models.ts) leaves out: deliveries, unknown events and more.
 */
import assert from 'node:assert/strict';
import type { Pool } from 'pg';
import { describe, type TestContext, test } from 'vitest';
import { digest } from '../../adapters/node/digest.ts';
import { LOG_START, streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, timestamp, type WebhookDeliveryId, type WebhookId } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { DueDeliveries, PendingDeliveries } from '../../core/ports/due-deliveries.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { ReadModelError, type ReadModels } from '../../core/ports/read-models.ts';
import { createModels } from '../../projections/models.ts';
import { createReadModels } from '../../projections/read-models.ts';
import { executeWrite } from '../../projections/runner/bulk.ts';
import { createRunnerTables, createTables, tablesOf } from '../../projections/runner/tables.ts';
import { usageProjection } from '../../projections/usage/apply.ts';
import { createMemoryDeliveries } from '../support/memory/deliveries.ts';
import { newDatabase } from '../support/read-model-database.ts';
import {
  Appender,
  createMemoryEventStore,
  layer,
  newUuid,
  type StartedRunner,
  startRunner,
  until,
} from '../support/read-models.ts';

interface Service extends StartedRunner {
  readonly store: EventStore;
  readonly append: Appender;
  readonly reads: ReadModels & DueDeliveries & PendingDeliveries;
  readonly current: () => Promise<ReadModels & DueDeliveries & PendingDeliveries>;
  /** Appends while no runner runs, so that the next one applies all of it in one batch. */
  readonly afterBatch: (appends: () => Promise<void>) => Promise<Service>;
}

type Stores = Pick<Service, 'store' | 'append'> & { readonly database: Pool };

async function serve(context: TestContext): Promise<Service> {
  const store = createMemoryEventStore();
  return serveOn(context, { database: await newDatabase(context), store, append: new Appender(store) });
}

async function serveOn(context: TestContext, stores: Stores): Promise<Service> {
  const { database, store, append } = stores;
  const models = createModels({
    digest,
    workflows: [],
    events: store,
    complete: async (event) => event,
    objects: {
      open: () => {
        throw new Error('No test here reads Git');
      },
    },
  });
  const started = await startRunner(context, { events: store, database, models: Object.values(models) });
  const reads = createReadModels({
    digest,
    database,
    models,
    runner: started.runner,
    clock: { now: () => append.now },
  });
  const current = async (): Promise<typeof reads> => {
    await reads.caughtUp(append.last);
    return reads;
  };
  const afterBatch = async (appends: () => Promise<void>): Promise<Service> => {
    await current();
    await started.runner.close();
    await appends();
    return serveOn(context, stores);
  };
  return { ...started, store, append, reads, current, afterBatch };
}

const PAGE = { offset: 0, limit: 50 };

describe('the list of repositories', () => {
  test('shows a restored repository with its former content, under its new name', async (context) => {
    const { append, current, afterBatch } = await serve(context);
    const account = await append.account('ada');
    const id = await append.repository(account, 'project');
    await append.push(account, id, { layer: layer(10) });
    const reopened = { default_branch: 'trunk', size_bytes: 10, pushed_at: append.now };
    const listed = async (of = current) => (await (await of()).repositories(account, null, PAGE)).items;
    const expected = {
      ...{ id, accountId: account, username: 'ada', description: null, defaultBranch: 'trunk', storageBucketId: null },
      ...{ sizeBytes: 10, createdAt: '2026-11-20T10:00:00.000Z', pushedAt: append.now },
    };
    await append.deleteRepository(account, id, 'project');
    assert.deepEqual(await listed(), []);
    await append.repository(account, 'project');
    await append.restoreRepository(account, id, 'again', reopened);
    assert.deepEqual((await listed())[0], { ...expected, name: 'again' });
    const later = await afterBatch(async () => {
      await append.deleteRepository(account, id, 'again');
      await append.restoreRepository(account, id, 'once-more', reopened);
      await append.push(account, id, { layer: layer(5) });
    });
    assert.deepEqual((await listed(later.current))[0], { ...expected, name: 'once-more', sizeBytes: 15 });
    assert.deepEqual(await later.reads.halfDeleted(), []);
    // By its own stream only, as if the account's events were parked: nothing is counted twice.
    const stream = streamName('repository', id);
    await append.append(stream, account, 'RepositoryClosed', {});
    await later.current();
    await append.append(stream, account, 'RepositoryReopened', { ...reopened, size_bytes: 15 });
    assert.equal((await listed(later.current))[0]?.sizeBytes, 15);
  });
});

describe('the list of ref changes', () => {
  test('numbers changes without gaps however they are batched, and is the same when it is built again', async (context) => {
    const { append, current, afterBatch } = await serve(context);
    const account = await append.account('ada');
    const ids = [await append.repository(account, 'one'), await append.repository(account, 'two')];
    let moved = 0;
    const push = async (index: number): Promise<void> => {
      const updates = Array.from({ length: 1 + (index % 3) }, (_, update) => {
        moved += 1;
        const after = String(moved).padStart(40, '0');
        const ref = `refs/heads/branch-${update}`;
        return { ref, before: '0'.repeat(40), after, type: 'commit', peeled: null, kind: 'force-push' } as const;
      });
      await append.push(account, ids[index % 2] ?? newUuid(), { updates });
    };
    const many = async (): Promise<void> => {
      for (let index = 0; index < 7; index += 1) await push(index);
    };
    await many();
    await current();
    const later = await afterBatch(many);
    for (const id of ids) {
      const { items, total } = await (await later.current()).activity(id, PAGE);
      assert.equal(items.length, total);
      assert.deepEqual(
        items.map(({ number }) => number),
        Array.from({ length: total }, (_, index) => total - 1 - index),
      );
      // Within one push the numbers follow the order of its updates.
      for (const [index, { after }] of items.entries()) {
        const next = items[index + 1];
        if (next !== undefined) assert.ok(Number(after) > Number(next.after), `${after} is newer`);
      }
    }
    for (const { differences } of await later.runner.verify('activity')) assert.equal(differences, 0);
  });
});

describe('the list of deliveries', () => {
  test('shows each webhook its own deliveries, newest first, and lists the due ones for the dispatcher', async (context) => {
    const { append, current, store, runner } = await serve(context);
    const account = await append.account('ada');
    const [webhook, other] = [newUuid<WebhookId>(), newUuid<WebhookId>()];
    const appendTo = (id: WebhookDeliveryId, type: string, data: JsonObject): Promise<unknown> =>
      append.append(streamName('webhookDelivery', id), account, type, data);
    const request = async (to: WebhookId): Promise<WebhookDeliveryId> => {
      const id = newUuid<WebhookDeliveryId>();
      const facts = { event_id: newUuid(), event: 'push', repository_id: newUuid(), payload_sha256: '0'.repeat(64) };
      await appendTo(id, 'WebhookDeliveryRequested', { webhook_id: to, ...facts, not_before: null });
      return id;
    };
    const attempted = { started_at: '2026-11-21T10:00:01.000Z', duration_ms: 1_500, detail: null };
    const failed = { ...attempted, outcome: 'failed', http_status: 500, error: 'status-not-2xx', answer_sha256: null };
    const succeeded = { ...attempted, outcome: 'succeeded', http_status: 204, error: null, answer_sha256: null };
    const claim = { claim_id: newUuid(), until: '2026-11-21T10:01:00.000Z' };
    const [first, second, third] = [await request(webhook), await request(webhook), await request(webhook)];
    const elsewhere = await request(other);
    await appendTo(first, 'WebhookDeliveryAttemptClaimed', { series: 1, attempt: 1, ...claim });
    await appendTo(first, 'WebhookDeliveryAttempted', { series: 1, attempt: 1, ...failed });
    await current();
    await appendTo(second, 'WebhookDeliveryAttemptClaimed', { series: 1, attempt: 1, ...claim });
    await appendTo(elsewhere, 'WebhookDeliveryAttempted', { series: 1, attempt: 1, ...succeeded });
    await appendTo(elsewhere, 'WebhookDeliverySucceeded', { series: 1 });

    const reads = await current();
    const twin = createMemoryDeliveries(store);
    for (const id of [webhook, other]) {
      assert.deepEqual(await reads.webhookDeliveries(account, id, 50), await twin.webhookDeliveries(account, id, 50));
      assert.deepEqual(await reads.dueDeliveries(id, 50), await twin.dueDeliveries(id, 50));
      for (const delivery of [first, elsewhere]) {
        const found = await reads.webhookDelivery(account, id, delivery);
        assert.deepEqual(found, await twin.webhookDelivery(account, id, delivery));
        assert.equal(found === null, (delivery === elsewhere) !== (id === other), 'only the deliveries of the webhook');
      }
    }
    assert.equal(await reads.webhookDelivery(newUuid<AccountId>(), webhook, first), null, 'another account sees none');
    const due = async (limit: number) =>
      (await (await current()).dueDeliveries(webhook, limit)).map(({ id, isFirst, isDue }) => [id, isFirst, isDue]);
    const firsts = [
      [second, true, false],
      [third, true, true],
    ];
    assert.deepEqual(await due(50), firsts, 'a claimed first attempt blocks those behind it, a waiting retry does not');
    const pending = { pending: 3, oldestAt: '2026-11-21T10:00:00.000Z' };
    assert.deepEqual([await reads.backlog(), await twin.backlog()], [pending, pending]);
    await appendTo(first, 'WebhookDeliveryAttemptFellDue', { series: 1, attempt: 2 });
    assert.deepEqual(await due(50), [...firsts, [first, false, true]]);
    assert.equal((await due(1)).length, 2, 'the limit counts for each kind');
    assert.deepEqual(await reads.dueWebhooks(), [{ webhook, account }]);
    assert.deepEqual(await twin.dueWebhooks(), [{ webhook, account }]);
    const [newest] = await reads.webhookDeliveries(account, webhook, 1);
    assert.equal(newest?.id, third);
    assert.deepEqual(await reads.webhookDeliveries(newUuid<AccountId>(), webhook, 50), [], 'another account sees none');
    assert.equal((await reads.webhookDeliveries(account, webhook, 50))[2]?.nextAttemptAt, '2026-11-21T10:00:10.500Z');
    assert.deepEqual([await reads.pendingOfAccount(account, 10), await reads.pendingOfAccount(account, 2)], [3, 2]);
    assert.equal(await reads.pendingOfAccount(newUuid<AccountId>(), 10), 0);
    const until = '2026-11-21T11:00:00.000Z';
    await appendTo(elsewhere, 'WebhookRedelivered', { series: 2, not_before: until });
    const shown = async () => {
      const row = await (await current()).webhookDelivery(account, other, elsewhere);
      return [row?.status, row?.nextAttemptAt, row?.deferredUntil];
    };
    assert.deepEqual(await shown(), ['PENDING', until, until]);
    assert.deepEqual(await (await current()).dueDeliveries(other, 10), [], 'it is not due before its hour');
    await appendTo(elsewhere, 'WebhookDeliveryAttemptFellDue', { series: 2, attempt: 1 });
    assert.deepEqual(await shown(), ['PENDING', until, null]);
    assert.equal((await reads.dueDeliveries(other, 10)).length, 1);
    for (const { differences } of await runner.verify('webhook_deliveries')) assert.equal(differences, 0);
  });
});

describe('usage', () => {
  test('counts the storage of a deleted and of a restored repository once, and its traffic throughout', async (context) => {
    const { append, reads, current, afterBatch } = await serve(context);
    const account = await append.account('ada');
    const first = await append.repository(account, 'first');
    const second = await append.repository(account, 'second');
    await append.push(account, first, { layer: layer(1_000), received_bytes: 1_100 });
    await append.push(account, second, { layer: layer(2_000), received_bytes: 2_200 });
    const whole = { storageBytes: 3_000, ingressBytes: 3_300, transferBytes: 0 };
    await append.deleteRepository(account, second, 'second');
    await current();
    assert.deepEqual(await reads.usageOf(account), whole);
    const reopened = { default_branch: null, size_bytes: 2_000, pushed_at: null };
    await append.restoreRepository(account, second, 'second', reopened);
    await current();
    assert.deepEqual(await reads.usageOf(account), whole);
    const later = await afterBatch(async () => {
      await append.deleteRepository(account, second, 'second');
      await append.restoreRepository(account, second, 'second', reopened);
      await append.push(account, second, { layer: layer(50) });
    });
    await later.current();
    assert.deepEqual(await later.reads.usageOf(account), { ...whole, storageBytes: 3_050 }, 'also in one batch');
  });
});

describe('transfer', () => {
  test('is the same when the events that a daily sum holds are pruned, and counts those after it', async (context) => {
    const { append, reads, current, afterBatch, store } = await serve(context);
    const account = await append.account('ada');
    const sent = (minute: string, sent_bytes: number) =>
      append.append(
        streamName('transfer', `${account}-node-${minute.slice(0, 10).replaceAll('-', '')}`),
        account,
        'TransferRecorded',
        {
          ...{ minute, sent_bytes, received_bytes: 0, by_reader: [], refused_reads: [] },
        },
      );
    const summed = (day: string, days: Readonly<Record<string, number>>) =>
      append.append(streamName('usage', account), account, 'UsageRecorded', {
        ...{ day, through: null, webhook_attempts: 0, sign_in_failures: 0, details: null },
        transfer: Object.entries(days).map(([one, sent_bytes]) => ({
          day: one,
          sent_bytes,
          received_bytes: 0,
          by_reader: [],
        })),
      });
    append.now = timestamp('2026-11-20T10:00:00.000Z');
    await sent('2026-11-20T09:59:00.000Z', 1);
    append.now = timestamp('2026-11-21T00:00:30.000Z');
    // Sent yesterday and appended today: the sum of yesterday does not hold it.
    await sent('2026-11-20T23:59:00.000Z', 20);
    await current();
    assert.equal((await reads.usageOf(account)).transferBytes, 21);
    await summed('2026-11-20', { '2026-11-20': 1 });
    await sent('2026-11-21T00:01:00.000Z', 300);
    await current();
    assert.equal((await reads.usageOf(account)).transferBytes, 321);
    const days = [
      { day: '2026-11-20', ingressBytes: 0, transferBytes: 21 },
      { day: '2026-11-21', ingressBytes: 0, transferBytes: 300 },
    ];
    assert.deepEqual(await reads.dailyTraffic(account), days);
    const later = await afterBatch(async () => {
      append.now = timestamp('2026-11-22T00:10:00.000Z');
      await sent('2026-11-22T00:05:00.000Z', 4_000);
      await summed('2026-11-21', { '2026-11-20': 20, '2026-11-21': 300 });
      await sent('2026-11-22T00:06:00.000Z', 50_000);
    });
    await later.current();
    assert.deepEqual(await later.reads.dailyTraffic(account), [
      ...days,
      { day: '2026-11-22', ingressBytes: 0, transferBytes: 54_000 },
    ]);
    for (const { projection, differences } of await later.runner.verify(null)) assert.equal(differences, 0, projection);
    const pruned = createMemoryEventStore();
    for (const { stream, revision, ...event } of await store.readAll(LOG_START, 1_000)) {
      if (stream.endsWith('-20261120') || stream.endsWith('-20261121')) continue;
      await pruned.append({ stream, expected: revision === 0 ? 'none' : revision - 1, events: [event] });
    }
    const beside = await serveOn(context, {
      database: await newDatabase(context),
      store: pruned,
      append: later.append,
    });
    const head = await pruned.head();
    await beside.reads.caughtUp(head);
    assert.deepEqual(await beside.reads.usageOf(account), await later.reads.usageOf(account));
    assert.deepEqual(await beside.reads.dailyTraffic(account), await later.reads.dailyTraffic(account));
    await beside.reads.usageLedgerCaughtUp(head);
    const page = { after: null, limit: 100, minutesFrom: '2026-11-22' };
    const ledger = await later.reads.usageLedger(account, '2026-11', page);
    assert.equal(ledger.totals.transfer_bytes, 54_321);
    assert.deepEqual(await beside.reads.usageLedger(account, '2026-11', page), ledger);
  });
});

describe('transfer of a stream that was parked', () => {
  test('does not count again if it is replayed after the daily sum that holds it', async (context) => {
    const { append, store } = await serve(context);
    const account = await append.account('ada');
    const minute = append.now;
    await append.append(streamName('transfer', `${account}-node`), account, 'TransferRecorded', {
      ...{ minute, sent_bytes: 7, received_bytes: 0, by_reader: [], refused_reads: [] },
    });
    await append.append(streamName('usage', account), account, 'UsageRecorded', {
      ...{ day: minute.slice(0, 10), through: null, webhook_attempts: 0, sign_in_failures: 0, details: null },
      transfer: [{ day: minute.slice(0, 10), sent_bytes: 7, received_bytes: 0, by_reader: [] }],
    });
    const database = await newDatabase(context);
    const generation = { projection: usageProjection, number: 1 };
    await createRunnerTables(database);
    await createTables(database, generation);
    const table = tablesOf(generation);
    const all = await store.readAll(LOG_START, 10);
    for (const category of ['usage', 'transfer']) {
      const events = all.filter(({ stream }) => stream.startsWith(`${category}-`));
      const write = await usageProjection.open(table).prepare(events, database, { patient: true });
      await executeWrite(database, write);
    }
    const { rows } = await database.query(
      `SELECT (SELECT sum(transfer_bytes) FROM ${table('usage_traffic')})::int AS summed,
        (SELECT count(*) FROM ${table('usage_minutes')})::int AS minutes`,
    );
    assert.deepEqual(rows, [{ summed: 7, minutes: 0 }]);
  });
});

describe('compacted layers', () => {
  test('count with their new size, in the list and in usage', async (context) => {
    const { append, current } = await serve(context);
    const account = await append.account('ada');
    const repository = await append.repository(account, 'project');
    const [first, second] = [layer(700), layer(300)];
    await append.push(account, repository, { layer: first });
    await append.push(account, repository, { layer: second });
    await current();
    const removed = [first, second].map(({ id, size_bytes }) => ({ id, size_bytes }));
    const stream = streamName('repository', repository);
    await append.append(stream, account, 'LayersCompacted', {
      ...{ revision: 1, removed, added: [{ ...layer(600), holds: 'merged' }], shrink_epoch: 1, clean: true },
    });
    await append.append(stream, account, 'LayersExpired', {
      ...{ layers: removed.map((one) => ({ ...one, current: false })), reason: 'retention', shrink_epoch: 1 },
    });
    const reads = await current();
    assert.equal((await reads.repositories(account, null, PAGE)).items[0]?.sizeBytes, 600);
    assert.equal((await reads.usageOf(account)).storageBytes, 600);
  });
});

describe('an event of a type that this program does not know', () => {
  test('is logged as an error: its stream is parked, and reads of it fail with read-model-parked', async (context) => {
    const { append, current, runner, log } = await serve(context);
    const account = await append.account('ada');
    const sound = await append.account('bob');
    await append.repository(sound, 'project');
    await append.append(streamName('account', account), account, 'AccountTeleported', {});
    const reads = await current();
    const isParked = (error: unknown): boolean => error instanceof ReadModelError && error.code === 'read-model-parked';
    await assert.rejects(reads.repositories(account, null, PAGE), isParked);
    await assert.rejects(reads.usageOf(account), isParked);
    assert.equal((await reads.repositories(sound, null, PAGE)).total, 1);
    const models = ['repositories', 'history', 'usage', 'usage_ledger', 'bucket_errors'];
    // Those that were not read from may still be on their way to the event.
    await until(async () => (await runner.parked()).length >= models.length);
    const parked = await runner.parked();
    assert.deepEqual(new Set(parked.map(({ projection }) => projection)), new Set(models));
    assert.match(parked[0]?.error ?? '', /unknown-event/);
    assert.ok(log.lines.some(({ level, message }) => level === 'error' && message.includes('parked')));
  });
});
