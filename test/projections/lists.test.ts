/** The lists and sums that REST shows: repositories, access tokens, usage. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { streamName } from '../../core/kernel/envelope.ts';
import {
  type AccessTokenId,
  type AccountId,
  timestamp,
  type WebhookDeliveryId,
  type WebhookId,
} from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { type DueDeliveries, ReadModelError, type ReadModels } from '../../core/ports/read-models.ts';
import type { UsageReader } from '../../core/ports/usage.ts';
import { createModels } from '../../projections/models.ts';
import { createReadModels } from '../../projections/read-models.ts';
import { createMemoryDeliveries } from '../support/memory/deliveries.ts';
import { newDatabase } from '../support/read-model-database.ts';
import {
  Appender,
  createMemoryEventStore,
  layer,
  newUuid,
  startRunner,
  type StartedRunner,
} from '../support/read-models.ts';

interface Service extends StartedRunner {
  readonly store: EventStore;
  readonly append: Appender;
  readonly reads: ReadModels & UsageReader & DueDeliveries;
  readonly current: () => Promise<ReadModels & UsageReader & DueDeliveries>;
}

async function serve(context: TestContext): Promise<Service> {
  const database = await newDatabase(context);
  const store = createMemoryEventStore();
  const append = new Appender(store);
  const models = createModels({
    workflows: [],
    events: store,
    objects: {
      open: () => {
        throw new Error('No test here reads Git');
      },
    },
  });
  const started = await startRunner(context, { events: store, database, models: Object.values(models) });
  const reads = createReadModels({ database, models, runner: started.runner, clock: { now: () => append.now } });
  const current = async (): Promise<typeof reads> => {
    await reads.caughtUp(append.last);
    return reads;
  };
  return { ...started, store, append, reads, current };
}

const PAGE = { offset: 0, limit: 50 };

describe('the list of repositories', () => {
  test('shows what both streams say, by name without case, in pages', async (context) => {
    const { append, current } = await serve(context);
    const account = await append.account('ada');
    const other = await append.account('bob');
    await append.repository(other, 'elsewhere');
    append.now = timestamp('2026-11-21T11:00:00.000Z');
    const beta = await append.repository(account, 'Beta', { description: 'second', default_branch: 'trunk' });
    const alpha = await append.repository(account, 'alpha');
    await append.repository(account, 'gamma');
    append.now = timestamp('2026-11-21T12:00:00.000Z');
    await append.push(account, beta, { layer: layer(700) });
    await append.push(account, beta, { layer: layer(77) });
    await append.append(streamName('repository', alpha), account, 'DefaultBranchChanged', { default_branch: 'dev' });
    const described = { repository_id: beta, description: null };
    await append.append(streamName('account', account), account, 'RepositoryDescribed', described);
    const reads = await current();
    const all = await reads.repositories(account, null, PAGE);
    assert.deepEqual([all.total, all.items.map(({ name }) => name)], [3, ['alpha', 'Beta', 'gamma']]);
    assert.deepEqual(all.items[1], {
      ...{ id: beta, accountId: account, username: 'ada', name: 'Beta', description: null, defaultBranch: 'trunk' },
      ...{ storageBucketId: null, sizeBytes: 777 },
      ...{ createdAt: '2026-11-21T11:00:00.000Z', pushedAt: '2026-11-21T12:00:00.000Z' },
    });
    assert.deepEqual([all.items[0]?.defaultBranch, all.items[0]?.pushedAt], ['dev', null]);
    assert.deepEqual([all.items[2]?.defaultBranch, all.items[2]?.sizeBytes], ['master', 0]);
    const second = await reads.repositories(account, null, { offset: 1, limit: 1 });
    assert.deepEqual([second.total, second.items.map(({ name }) => name)], [3, ['Beta']]);
    const beyond = await reads.repositories(account, null, { offset: 9, limit: 1 });
    assert.deepEqual([beyond.total, beyond.items], [3, []]);
    const only = await reads.repositories(account, [alpha, newUuid()], PAGE);
    assert.deepEqual([only.total, only.items.map(({ name }) => name)], [1, ['alpha']]);
    assert.deepEqual(await reads.repositories(account, [], PAGE), { total: 0, items: [] });
  });

  test('leaves a repository out once it is closed, and lets its name be taken again', async (context) => {
    const { append, current } = await serve(context);
    const account = await append.account('ada');
    const first = await append.repository(account, 'project');
    await append.push(account, first, { layer: layer(10) });
    await current();
    await append.append(streamName('repository', first), account, 'RepositoryClosed', {});
    assert.equal((await (await current()).repositories(account, null, PAGE)).total, 0);
    const deleted = { repository_id: first, name: 'project' };
    await append.append(streamName('account', account), account, 'RepositoryDeleted', deleted);
    const second = await append.repository(account, 'PROJECT');
    const listed = await (await current()).repositories(account, null, PAGE);
    assert.deepEqual(
      listed.items.map(({ id, name }) => [id, name]),
      [[second, 'PROJECT']],
    );
  });

  test('takes texts that PostgreSQL cannot hold', async (context) => {
    const { append, current } = await serve(context);
    const account = await append.account('ada');
    await append.repository(account, 'project', { description: 'nul \u0000 and \\u0000 and \\ud800' });
    const listed = await (await current()).repositories(account, null, PAGE);
    assert.equal(listed.items[0]?.description, 'nul \uFFFD and \\u0000 and \\ud800');
  });
});

describe('the list of access tokens', () => {
  test('shows active ones, newest first, without those that have expired', async (context) => {
    const { append, current } = await serve(context);
    const account = await append.account('ada');
    const update = (id: AccessTokenId, data: JsonObject): Promise<unknown> =>
      append.append(streamName('accessToken', id), account, 'AccessTokenUpdated', data);
    const first = await append.token(account, 'first');
    const second = await append.token(account, 'second', { expires_at: '2026-11-22T00:00:00.000Z' });
    const revoked = await append.token(account, 'revoked');
    await append.token(await append.account('bob'), 'elsewhere');
    await current();
    const repository = newUuid();
    await update(first, { name: 'renamed', scope: 'SELECTED_REPO', repository_ids: [repository] });
    await update(first, { grants: ['GIT_HTTP_READ'], expires_at: '2027-01-01T00:00:00.000Z' });
    const gone = { reason: 'deleted' };
    await append.append(streamName('accessToken', revoked), account, 'AccessTokenRevoked', gone);
    const reads = await current();
    const listed = await reads.accessTokens(account, timestamp('2026-11-21T23:59:59.999Z'));
    assert.deepEqual(
      listed.map(({ id }) => id),
      [second, first],
    );
    assert.deepEqual(listed[1], {
      ...{ id: first, name: 'renamed', scope: 'SELECTED_REPO', grants: ['GIT_HTTP_READ'] },
      ...{ repositoryIds: [repository], expiresAt: '2027-01-01T00:00:00.000Z' },
      ...{ createdAt: '2026-11-21T10:00:00.000Z', tokenPrefix: 'strata_abcd' },
    });
    await update(first, { expires_at: null });
    const later = await (await current()).accessTokens(account, timestamp('2026-11-22T00:00:00.000Z'));
    assert.deepEqual(
      later.map(({ id, expiresAt }) => [id, expiresAt]),
      [[first, null]],
    );
  });
});

describe('the list of deliveries', () => {
  test('shows each webhook its own, newest first, and the dispatcher what is due, as their streams say', async (context) => {
    const { append, current, store, runner } = await serve(context);
    const account = await append.account('ada');
    const [webhook, other] = [newUuid<WebhookId>(), newUuid<WebhookId>()];
    const tell = (id: WebhookDeliveryId, type: string, data: JsonObject): Promise<unknown> =>
      append.append(streamName('webhookDelivery', id), account, type, data);
    const request = async (to: WebhookId): Promise<WebhookDeliveryId> => {
      const id = newUuid<WebhookDeliveryId>();
      const facts = { event_id: newUuid(), event: 'push', repository_id: newUuid(), payload_sha256: '0'.repeat(64) };
      await tell(id, 'WebhookDeliveryRequested', { webhook_id: to, ...facts });
      return id;
    };
    const attempted = { started_at: '2026-11-21T10:00:01.000Z', duration_ms: 1_500, detail: null };
    const failed = { ...attempted, outcome: 'failed', http_status: 500, error: 'status-not-2xx', answer_sha256: null };
    const succeeded = { ...attempted, outcome: 'succeeded', http_status: 204, error: null, answer_sha256: null };
    const claim = { claim_id: newUuid(), until: '2026-11-21T10:01:00.000Z' };
    const [first, second, third] = [await request(webhook), await request(webhook), await request(webhook)];
    const elsewhere = await request(other);
    await tell(first, 'WebhookDeliveryAttemptClaimed', { series: 1, attempt: 1, ...claim });
    await tell(first, 'WebhookDeliveryAttempted', { series: 1, attempt: 1, ...failed });
    await current();
    await tell(second, 'WebhookDeliveryAttemptClaimed', { series: 1, attempt: 1, ...claim });
    await tell(elsewhere, 'WebhookDeliveryAttempted', { series: 1, attempt: 1, ...succeeded });
    await tell(elsewhere, 'WebhookDeliverySucceeded', { series: 1 });

    const reads = await current();
    const twin = createMemoryDeliveries(store);
    for (const id of [webhook, other]) {
      assert.deepEqual(await reads.webhookDeliveries(account, id, 50), await twin.webhookDeliveries(account, id, 50));
      assert.deepEqual(await reads.dueDeliveries(id, 50), await twin.dueDeliveries(id, 50));
    }
    const due = async (limit: number) =>
      (await (await current()).dueDeliveries(webhook, limit)).map(({ id, isFirst, isDue }) => [id, isFirst, isDue]);
    const firsts = [
      [second, true, false],
      [third, true, true],
    ];
    assert.deepEqual(await due(50), firsts, 'one that was claimed holds up those behind it, one that waits does not');
    const pending = { pending: 3, oldestAt: '2026-11-21T10:00:00.000Z' };
    assert.deepEqual([await reads.backlog(), await twin.backlog()], [pending, pending]);
    await tell(first, 'WebhookDeliveryAttemptFellDue', { series: 1, attempt: 2 });
    assert.deepEqual(await due(50), [...firsts, [first, false, true]]);
    assert.equal((await due(1)).length, 2, 'so many of each sort');
    assert.deepEqual(await reads.dueWebhooks(), [{ webhook, account }]);
    assert.deepEqual(await twin.dueWebhooks(), [{ webhook, account }]);
    const [newest] = await reads.webhookDeliveries(account, webhook, 1);
    assert.equal(newest?.id, third);
    assert.deepEqual(await reads.webhookDeliveries(newUuid<AccountId>(), webhook, 50), [], "nobody else's");
    assert.equal((await reads.webhookDeliveries(account, webhook, 50))[2]?.nextAttemptAt, '2026-11-21T10:00:10.500Z');
    for (const { differences } of await runner.verify('webhook_deliveries')) assert.equal(differences, 0);
  });
});

describe('usage', () => {
  const transfer = (append: Appender, account: AccountId, minute: string, bytes: number): Promise<unknown> =>
    append.append(streamName('transfer', `${account}-node`), account, 'TransferRecorded', {
      ...{ minute, sent_bytes: bytes, by_token: [] },
    });

  test('counts traffic in its calendar month, storage until the repository is closed', async (context) => {
    const { append, current } = await serve(context);
    const account = await append.account('ada');
    const first = await append.repository(account, 'first');
    const second = await append.repository(account, 'second');
    append.now = timestamp('2026-11-30T23:59:59.999Z');
    await append.push(account, first, { layer: layer(1_000), received_bytes: 1_100 });
    await transfer(append, account, '2026-11-30T23:59:00.000Z', 5);
    append.now = timestamp('2026-12-01T00:00:00.000Z');
    // Sent in November, put into the log in December.
    await transfer(append, account, '2026-11-30T23:59:00.000Z', 6);
    await transfer(append, account, '2026-12-01T00:00:00.000Z', 7);
    await append.push(account, second, { layer: layer(2_000), received_bytes: 2_200 });
    await append.push(account, second, { received_bytes: 33 });
    const reads = await current();
    assert.deepEqual(await reads.usage(account, timestamp('2026-11-30T12:00:00.000Z')), {
      ...{ repositories: 2, storageBytes: 3_000, ingressBytes: 1_100, transferBytes: 11 },
    });
    const december = { repositories: 2, storageBytes: 3_000, ingressBytes: 2_233, transferBytes: 7 };
    assert.deepEqual(await reads.usage(account, append.now), december);
    assert.deepEqual(await reads.usageOf(account), december);
    await append.deleteRepository(account, second, 'second');
    await current();
    assert.deepEqual(await reads.usageOf(account), { ...december, repositories: 1, storageBytes: 1_000 });
    const nobody = { repositories: 0, storageBytes: 0, ingressBytes: 0, transferBytes: 0 };
    assert.deepEqual(await reads.usageOf(newUuid()), nobody);
  });
});

describe('an event of a type that this program does not know', () => {
  test('fails loudly: its stream is parked, and who reads it is told so', async (context) => {
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
    const parked = await runner.parked();
    assert.deepEqual(
      new Set(parked.map(({ projection }) => projection)),
      new Set(['repositories', 'history', 'usage']),
    );
    assert.match(parked[0]?.error ?? '', /unknown-event/);
    assert.ok(log.lines.some(({ level, message }) => level === 'error' && message.includes('parked')));
  });
});
