/**
 * The contract of core/ports/read-models.ts and core/ports/usage.ts, run on the projections and on the in-memory
 * implementation that tests of the API use.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START, type LogPosition, streamName } from '../../core/kernel/envelope.ts';
import {
  type AccessTokenId,
  type AccountId,
  type ObjectId,
  type PushId,
  type RepositoryId,
  type StorageBucketId,
  timestamp,
  type WebhookDeliveryId,
  type WebhookId,
  ZERO_OBJECT_ID,
} from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import {
  COMMIT_CROWDED_MESSAGE_LENGTH_MAX,
  COMMIT_LISTED_MESSAGE_LENGTH_MAX,
  COMMITS_PAGE_BYTES_MAX,
} from '../../core/kernel/limits.ts';
import type { ReadModels } from '../../core/ports/read-models.ts';
import type { UsageReader } from '../../core/ports/usage.ts';
import type { StoredRefUpdate } from '../../core/repository/events.ts';
import type { Ending } from '../support/cleanup.ts';
import type { MemoryObjects } from '../support/memory/object-database.ts';
import { type Appender, layer, newUuid } from '../support/read-models.ts';
import { accountLogContract } from './account-log.ts';
import { changesContract } from './changes.ts';
import { signInsContract } from './sign-ins.ts';
import { usageLedgerContract } from './usage-ledger.ts';
import { waitingStorageContract } from './waiting-storage.ts';

export interface OpenReadModels {
  /** Appends events to a log that is empty at first; its `now` is the time of the read models as well. */
  readonly append: Appender;
  /** The Git objects that every repository has. */
  readonly objects: MemoryObjects;
  readonly reads: ReadModels & UsageReader;
}

type Open = (context: Ending) => Promise<OpenReadModels>;

const PAGE = { offset: 0, limit: 50 };

const EXCHANGED = {
  ...{ trust_rule_id: newUuid(), rule_epoch: 0, subject_ref: '8'.repeat(64) },
  ...{ scope: 'ALL_REPO', grants: ['GIT_HTTP_WRITE'], repository_ids: [] },
  ...{ expires_at: '2026-11-21T10:15:00.000Z', secret_hash: 'e'.repeat(64), token_prefix: 'strata_1aBc' },
};

/** Resolves with the read models after they have applied the last appended event. */
async function current({ append, reads }: OpenReadModels): Promise<ReadModels & UsageReader> {
  await reads.caughtUp(append.last);
  return reads;
}

/** Declares the suite. */
export function readModelsContract(adapter: string, open: Open): void {
  describe(`read models ${adapter}`, () => {
    describe('of repositories', () => repositoriesContract(open));
    describe('of history', () => historyContract(open));
    describe('of access tokens', () => accessTokensContract(open));
    describe('of activity', () => activityContract(open));
    describe('of the logs of accounts', () => accountLogContract(open));
    describe('of changes', () => changesContract(open));
    describe('of usage', () => usageContract(open));
    describe('of what waits to leave storage', () => waitingStorageContract(open));
    describe('of usage ledgers', () => usageLedgerContract(open));
    describe('of sign-ins', () => signInsContract(open));

    test('catch up with the start of the log, and with the last appended event', async (context) => {
      const { append, reads } = await open(context);
      await reads.caughtUp(LOG_START);
      const account = await append.account('ada');
      await append.repository(account, 'project');
      await reads.caughtUp(append.last);
      assert.equal((await reads.repositories(account, null, PAGE)).total, 1);
    });
  });
}

function repositoriesContract(open: Open): void {
  test('find repositories by a part of the name or description, in any case, deleted ones never', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    await append.repository(await append.account('bob'), 'engine-of-bob');
    await append.repository(account, 'Engine');
    await append.repository(account, 'plain', { description: 'Turns the ENGINE. 100%_sure, GRÜN' });
    await append.repository(account, 'telescope', { description: 'a\nb' });
    const closed = await append.repository(account, 'engine-2');
    await append.append(streamName('repository', closed), account, 'RepositoryClosed', {});
    const reads = await current(models);
    const found = async (text: string, page = PAGE) => {
      const { items, total } = await reads.repositoriesWith(account, text, page);
      return [items.map(({ name }) => name), total];
    };
    assert.deepEqual(await found('engine'), [['Engine', 'plain'], 2]);
    assert.deepEqual(await found('eNGINE', { offset: 1, limit: 1 }), [['plain'], 2]);
    assert.deepEqual(await found('100%_'), [['plain'], 1]);
    assert.deepEqual(await found('%'), [['plain'], 1]);
    assert.deepEqual(await found('grün'), [['plain'], 1], 'letters beyond ASCII have cases too');
    assert.deepEqual(await found('nothing'), [[], 0]);
    assert.deepEqual(await found('\u0000'), [[], 0], 'a text that a database cannot hold');
  });

  test('list repositories from the events of both streams, by name ignoring case, in pages', async (context) => {
    const models = await open(context);
    const { append } = models;
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
    const reads = await current(models);
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
    assert.deepEqual(await reads.repositories(newUuid(), null, PAGE), { total: 0, items: [] }, 'an unknown account');
  });

  test('leave out a repository after it is closed, and allow its name to be used again', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const first = await append.repository(account, 'project');
    await append.push(account, first, { layer: layer(10) });
    assert.deepEqual(await (await current(models)).halfDeleted(), []);
    await append.append(streamName('repository', first), account, 'RepositoryClosed', {});
    assert.equal((await (await current(models)).repositories(account, null, PAGE)).total, 0);
    assert.deepEqual(await models.reads.halfDeleted(), [{ account, repository: first }]);
    const deleted = { repository_id: first, name: 'project' };
    await append.append(streamName('account', account), account, 'RepositoryDeleted', deleted);
    const second = await append.repository(account, 'PROJECT');
    const listed = await (await current(models)).repositories(account, null, PAGE);
    assert.deepEqual(
      listed.items.map(({ id, name }) => [id, name]),
      [[second, 'PROJECT']],
    );
    assert.deepEqual(await models.reads.halfDeleted(), []);
    assert.deepEqual([await models.reads.ownerOf(first), await models.reads.ownerOf(second)], [null, account]);
  });

  test('list renamed repositories under their new names, also where two have exchanged theirs', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const rename = (repository_id: string, previous_name: string, name: string) =>
      append.append(streamName('account', account), account, 'RepositoryRenamed', {
        ...{ repository_id, previous_name, name },
      });
    const first = await append.repository(account, 'First', { description: 'one' });
    const second = await append.repository(account, 'second');
    await current(models);
    await rename(first, 'First', 'spare');
    await rename(second, 'second', 'First');
    await rename(first, 'spare', 'Second');
    const third = await append.repository(account, 'spare');
    await rename(third, 'spare', 'third');
    const gone = await append.repository(account, 'spare');
    await rename(gone, 'spare', 'gone');
    await append.deleteRepository(account, gone, 'gone');
    const listed = await (await current(models)).repositories(account, null, PAGE);
    assert.deepEqual(
      listed.items.map(({ id, name, description }) => [id, name, description]),
      [
        [second, 'First', null],
        [first, 'Second', 'one'],
        [third, 'third', null],
      ],
    );
    await rename(third, 'third', 'zero');
    await append.deleteRepository(account, third, 'zero');
    assert.equal((await (await current(models)).repositories(account, null, PAGE)).total, 2);
  });

  test('name the buckets of users that repositories are in, each once', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const [first, second] = [newUuid(), newUuid()];
    await append.repository(account, 'a', { storage_bucket_id: first });
    await append.repository(account, 'b', { storage_bucket_id: first });
    const gone = await append.repository(account, 'c', { storage_bucket_id: second });
    await append.repository(account, 'd');
    await append.append(streamName('repository', gone), account, 'RepositoryClosed', {});
    const deleted = { repository_id: gone, name: 'c' };
    await append.append(streamName('account', account), account, 'RepositoryDeleted', deleted);
    assert.deepEqual(await (await current(models)).bucketsInUse(), [{ account, storageBucketId: first }]);
  });

  test('accept texts that PostgreSQL cannot store', async (context) => {
    const models = await open(context);
    const account = await models.append.account('ada');
    await models.append.repository(account, 'project', { description: 'nul \u0000 and \\u0000 and \\ud800' });
    const listed = await (await current(models)).repositories(account, null, PAGE);
    assert.equal(listed.items[0]?.description, 'nul \uFFFD and \\u0000 and \\ud800');
  });
}

/** Returns a function that pushes refs to new targets, whatever they were before; null deletes a ref. */
function pushTo({ append, objects }: OpenReadModels, account: AccountId, repository: RepositoryId) {
  return (refs: Readonly<Record<string, ObjectId | null>>): Promise<LogPosition> => {
    const updates = Object.entries(refs).map(([ref, after]) => ({
      ...{ ref, before: ZERO_OBJECT_ID, after: after ?? ZERO_OBJECT_ID },
      type: after === null ? null : objects.typeOf(after),
      peeled: null,
      kind: after === null ? ('delete' as const) : ('force-push' as const),
    }));
    return append.push(account, repository, { updates, layer: layer(1_000) });
  };
}

/** Returns a function that creates commits of an empty tree. */
function committer(objects: MemoryObjects) {
  const tree = objects.tree({});
  return (message: string, seconds: number, parents: readonly ObjectId[] = []): ObjectId =>
    objects.commit({ tree, message, seconds, parents });
}

function historyContract(open: Open): void {
  test('know a repository before its first push, but no closed or unknown one', async (context) => {
    const models = await open(context);
    const account = await models.append.account('ada');
    const repository = await models.append.repository(account, 'project');
    const reads = await current(models);
    assert.deepEqual(await reads.branches(repository), { revision: -1, branches: [] });
    assert.equal(await reads.defaultBranchCommits(repository, PAGE), null);
    assert.equal(await reads.branches(newUuid()), null);
    assert.equal(await reads.defaultBranchCommits(newUuid(), PAGE), null);
    const push = pushTo(models, account, repository);
    await push({ 'refs/heads/master': committer(models.objects)('A\n', 1) });
    assert.equal((await (await current(models)).branches(repository))?.branches.length, 1);
    await models.append.append(streamName('repository', repository), account, 'RepositoryClosed', {});
    await current(models);
    assert.equal(await reads.branches(repository), null);
    assert.equal(await reads.defaultBranchCommits(repository, PAGE), null);
  });

  test('cut long messages further on a page of commits that would be too large', async (context) => {
    const models = await open(context);
    const account = await models.append.account('ada');
    const repository = await models.append.repository(account, 'project');
    const commit = committer(models.objects);
    const message = 'm'.repeat(COMMIT_LISTED_MESSAGE_LENGTH_MAX);
    const fits = Math.floor(COMMITS_PAGE_BYTES_MAX / (message.length + 300));
    let tip = commit('Short\n', 0);
    for (let number = 1; number <= fits + 2; number += 1) tip = commit(message, number, [tip]);
    await pushTo(models, account, repository)({ 'refs/heads/master': tip });
    const reads = await current(models);
    const messages = async (offset: number, limit: number) =>
      (await reads.defaultBranchCommits(repository, { offset, limit }))?.items.map((row) => row.message);
    assert.deepEqual(await messages(0, fits), Array<string>(fits).fill(message));
    const cut = `${'m'.repeat(COMMIT_CROWDED_MESSAGE_LENGTH_MAX - 1)}…`;
    assert.deepEqual(await messages(0, fits + 3), [...Array<string>(fits + 2).fill(cut), 'Short\n']);
  });

  test('return branches in byte order, each with its commit, and no tags', async (context) => {
    const models = await open(context);
    const { append, objects } = models;
    const account = await append.account('ada');
    const repository = await append.repository(account, 'project');
    const [tree, commit] = [objects.tree({}), committer(objects)];
    const base = commit('Base\n', 1_000);
    const author = { name: 'Grace', email: 'grace@example.org', seconds: 900 };
    const tip = objects.commit({
      tree,
      parents: [base],
      message: 'Subject\n\nBody \u{1F600}\n',
      seconds: 2_000,
      author,
    });
    const push = pushTo(models, account, repository);
    await push({ 'refs/heads/a/b': base, 'refs/heads/a-b': base, 'refs/heads/é': base, 'refs/tags/v1': base });
    await push({ 'refs/heads/Z': tip });
    const listed = await (await current(models)).branches(repository);
    assert.equal(listed?.revision, 1);
    assert.deepEqual(
      listed.branches.map(({ name, commit: { id } }) => [name, id]),
      [
        ['Z', tip],
        ['a-b', base],
        ['a/b', base],
        ['é', base],
      ],
    );
    assert.deepEqual(listed.branches[0]?.commit, {
      ...{ id: tip, message: 'Subject\n\nBody \u{1F600}\n', parents: [base] },
      author: { name: 'Grace', email: 'grace@example.org' },
      committer: { name: 'Ada', email: 'ada@example.org' },
      ...{ authoredAt: 900, committedAt: 2_000 },
    });
    await push({ 'refs/heads/a-b': null, 'refs/heads/a/b': tip });
    const moved = await (await current(models)).branches(repository);
    assert.deepEqual(
      moved?.branches.map(({ name, commit: { id } }) => [name, id]),
      [
        ['Z', tip],
        ['a/b', tip],
        ['é', base],
      ],
    );
  });

  test('return the commits of the default branch in the order of git log, in pages', async (context) => {
    const models = await open(context);
    const { append, objects } = models;
    const account = await append.account('ada');
    const repository = await append.repository(account, 'project', { default_branch: 'main' });
    const commit = committer(objects);
    const push = pushTo(models, account, repository);
    const root = commit('root\n', 1_000);
    // Dated in the future by a wrong clock; it still comes after its child.
    const future = commit('future\n', 9_000, [root]);
    const left = commit('left\n', 2_000, [future]);
    const right = commit('right\n', 3_000, [root]);
    const tip = commit('merge\n', 4_000, [left, right]);
    await push({ 'refs/heads/main': tip, 'refs/heads/other': commit('elsewhere\n', 5_000) });
    const reads = await current(models);
    const all = await reads.defaultBranchCommits(repository, PAGE);
    assert.deepEqual([all?.revision, all?.tip, all?.total], [0, tip, 5]);
    const order = [tip, right, left, future, root];
    assert.deepEqual(
      all?.items.map(({ id }) => id),
      order,
    );
    const second = await reads.defaultBranchCommits(repository, { offset: 1, limit: 2 });
    assert.deepEqual(
      second?.items.map(({ id }) => id),
      order.slice(1, 3),
    );
    const beyond = await reads.defaultBranchCommits(repository, { offset: 5, limit: 2 });
    assert.deepEqual([beyond?.items, beyond?.total], [[], 5]);
    await append.append(streamName('repository', repository), account, 'DefaultBranchChanged', {
      default_branch: 'other',
    });
    assert.equal((await (await current(models)).defaultBranchCommits(repository, PAGE))?.total, 1);
    await push({ 'refs/heads/other': null });
    assert.equal(await (await current(models)).defaultBranchCommits(repository, PAGE), null);
  });

  test('order commits with the same date as git does: the one found first comes first', async (context) => {
    const models = await open(context);
    const account = await models.append.account('ada');
    const repository = await models.append.repository(account, 'project', { default_branch: 'main' });
    const commit = committer(models.objects);
    const root = commit('root\n', 1_000);
    const [left, right] = [commit('left\n', 1_000, [root]), commit('right\n', 1_000, [root])];
    const tip = commit('merge\n', 1_000, [right, left]);
    await pushTo(models, account, repository)({ 'refs/heads/main': tip });
    const listed = await (await current(models)).defaultBranchCommits(repository, PAGE);
    assert.deepEqual(
      listed?.items.map(({ id }) => id),
      [tip, right, left, root],
    );
  });

  test('accept texts of commits that PostgreSQL cannot store', async (context) => {
    const models = await open(context);
    const account = await models.append.account('ada');
    const repository = await models.append.repository(account, 'project', { default_branch: 'main' });
    const tip = committer(models.objects)('nul \u0000\n', 1_000);
    await pushTo(models, account, repository)({ 'refs/heads/main': tip });
    const reads = await current(models);
    assert.equal((await reads.branches(repository))?.branches[0]?.commit.message, 'nul \uFFFD\n');
    assert.equal((await reads.defaultBranchCommits(repository, PAGE))?.items[0]?.message, 'nul \uFFFD\n');
  });
}

function accessTokensContract(open: Open): void {
  test('list active tokens, newest first, without expired or revoked ones', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const update = (id: AccessTokenId, data: JsonObject): Promise<unknown> =>
      append.append(streamName('accessToken', id), account, 'AccessTokenUpdated', data);
    const first = await append.token(account, 'first');
    const second = await append.token(account, 'second', { expires_at: '2026-11-22T00:00:00.000Z' });
    const revoked = await append.token(account, 'revoked');
    await append.token(await append.account('bob'), 'elsewhere');
    await current(models);
    const repository = newUuid();
    await update(first, { name: 'renamed', scope: 'SELECTED_REPO', repository_ids: [repository] });
    await update(first, { grants: ['GIT_HTTP_READ'], expires_at: '2027-01-01T00:00:00.000Z' });
    const gone = { reason: 'deleted' };
    await append.append(streamName('accessToken', revoked), account, 'AccessTokenRevoked', gone);
    const reads = await current(models);
    const listed = await reads.accessTokens(account, timestamp('2026-11-21T23:59:59.999Z'));
    assert.deepEqual(
      listed.map(({ id }) => id),
      [second, first],
    );
    const sums = (at: string, besides: AccessTokenId | null = null) =>
      reads.accessTokenSums(account, timestamp(at), besides);
    assert.deepEqual(await sums('2026-11-21T23:59:59.999Z'), { tokens: 2, repositories: 1 });
    assert.deepEqual(await sums('2026-11-22T00:00:00.000Z'), { tokens: 1, repositories: 1 });
    assert.deepEqual(await sums('2026-11-21T23:59:59.999Z', first), { tokens: 1, repositories: 0 });
    assert.deepEqual(listed[1], {
      ...{ id: first, name: 'renamed', scope: 'SELECTED_REPO', grants: ['GIT_HTTP_READ'] },
      ...{ repositoryIds: [repository], expiresAt: '2027-01-01T00:00:00.000Z' },
      ...{ createdAt: '2026-11-21T10:00:00.000Z', tokenPrefix: 'strata_abcd' },
    });
    const [exchanged, ended] = [newUuid<AccessTokenId>(), newUuid<AccessTokenId>()];
    for (const id of [exchanged, ended])
      await append.append(streamName('accessToken', id), account, 'AccessTokenExchanged', { account, ...EXCHANGED });
    await current(models);
    await append.append(streamName('accessToken', ended), account, 'AccessTokenRevoked', gone);
    await current(models);
    const ids = [first, newUuid<AccessTokenId>(), second, revoked, exchanged, ended];
    assert.deepEqual([...(await reads.tokensAmong(ids, LOG_START))].toSorted(), [first, second, exchanged].toSorted());
    assert.equal((await reads.tokensAmong([], LOG_START)).size, 0);
    await update(first, { expires_at: null });
    const later = await (await current(models)).accessTokens(account, timestamp('2026-11-22T00:00:00.000Z'));
    assert.deepEqual(
      later.map(({ id, expiresAt }) => [id, expiresAt]),
      [[first, null]],
    );
    assert.deepEqual(await reads.webhookDeliveries(account, newUuid<WebhookId>(), 10), []);
    assert.equal(await reads.webhookDelivery(account, newUuid<WebhookId>(), newUuid<WebhookDeliveryId>()), null);
  });

  test('list errors of storage buckets, newest first, of the buckets and repositories that are asked for', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const [bucket, other] = [newUuid<StorageBucketId>(), newUuid<StorageBucketId>()];
    const [own, hidden] = [newUuid<RepositoryId>(), newUuid<RepositoryId>()];
    const stream = streamName('account', account);
    const refs = { place_ref: 'a'.repeat(64), access_ref: 'b'.repeat(64) };
    for (const bucket_id of [bucket, other]) {
      const data = { bucket_id, name: bucket_id, provider: 'S3', auth_mode: 'OIDC', ...refs };
      await append.append(stream, account, 'StorageBucketCreated', data);
      const failure = { bucket_id, step: 'put', code: 'access-denied' };
      await append.append(stream, account, 'StorageBucketVerificationFailed', failure);
    }
    for (const repository_id of [own, hidden, null]) {
      const data = { bucket_id: bucket, repository_id, operation: 'push', code: 'timed-out' };
      await append.append(streamName('bucketErrors', `${bucket}-20261121`), account, 'BucketErrorRecorded', data);
    }
    const reads = await current(models);
    const page = { offset: 0, limit: 10 };
    const all = await reads.bucketErrors({ account, buckets: [bucket], repositories: null }, page);
    assert.equal(all.total, 4);
    assert.deepEqual(
      all.items.map(({ repository, operation, step, code }) => [repository, operation, step, code]),
      [
        [null, 'push', null, 'timed-out'],
        [hidden, 'push', null, 'timed-out'],
        [own, 'push', null, 'timed-out'],
        [null, 'verify', 'put', 'access-denied'],
      ],
    );
    assert.deepEqual(all.items[0]?.occurredAt, '2026-11-21T10:00:00.000Z');
    const middle = await reads.bucketErrors(
      { account, buckets: [bucket, other], repositories: [own] },
      { offset: 1, limit: 2 },
    );
    assert.deepEqual(
      [middle.total, middle.items.map(({ repository, bucket: of }) => [repository, of])],
      [
        4,
        [
          [own, bucket],
          [null, other],
        ],
      ],
    );
    const nobody = { account: newUuid<AccountId>(), buckets: [bucket], repositories: null };
    assert.deepEqual(await reads.bucketErrors(nobody, page), { items: [], total: 0 });
    assert.deepEqual(await reads.bucketErrors({ account, buckets: [], repositories: null }, page), {
      items: [],
      total: 0,
    });
  });
}

function activityContract(open: Open): void {
  const id = (digit: string): ObjectId => digit.repeat(40) as ObjectId;
  const update = (ref: string, before: ObjectId, after: ObjectId, kind: string, peeled: ObjectId | null = null) => {
    const type = kind === 'delete' ? null : peeled === null ? 'commit' : 'tag';
    return { ref, before, after, type, peeled, kind } as StoredRefUpdate;
  };
  const MAIN = 'refs/heads/main';

  test('list each change of a ref, newest first, with its push, its kind and the name of its token', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const repository = await append.repository(account, 'project');
    const other = await append.repository(account, 'other');
    const token = await append.token(account, 'laptop');
    append.actor = { kind: 'token', id: token };
    append.now = timestamp('2026-11-21T11:00:00.000Z');
    await append.push(account, repository, {
      updates: [
        update(MAIN, ZERO_OBJECT_ID, id('1'), 'create'),
        update('refs/tags/v1', ZERO_OBJECT_ID, id('2'), 'create', id('1')),
      ],
    });
    await append.push(account, other, { updates: [update(MAIN, ZERO_OBJECT_ID, id('9'), 'create')] });
    append.actor = { kind: 'user', id: account };
    await append.append(streamName('repository', repository), account, 'DefaultBranchChanged', { default_branch: 'x' });
    append.now = timestamp('2026-11-21T12:00:00.000Z');
    await append.push(account, repository, { updates: [update(MAIN, id('1'), id('3'), 'force-push')] });
    await append.push(account, repository, { updates: [update('refs/tags/v1', id('2'), ZERO_OBJECT_ID, 'delete')] });
    const event_id = newUuid();
    await append.push(account, repository, {
      updates: [
        update(MAIN, id('3'), ZERO_OBJECT_ID, 'delete'),
        update('refs/tags/v1', ZERO_OBJECT_ID, id('2'), 'create'),
      ],
      restored: { event_id },
    });
    const reads = await current(models);
    const { items, total } = await reads.activity(repository, PAGE);
    assert.deepEqual(
      items.map(({ number, push, ref, before, after, kind }) => [
        number,
        push.revision,
        ref,
        before[0],
        after[0],
        kind,
      ]),
      [
        [5, 4, 'refs/tags/v1', '0', '2', 'restore'],
        [4, 4, MAIN, '3', '0', 'restore'],
        [3, 3, 'refs/tags/v1', '2', '0', 'delete'],
        [2, 2, MAIN, '1', '3', 'force-push'],
        [1, 0, 'refs/tags/v1', '0', '2', 'create'],
        [0, 0, MAIN, '0', '1', 'create'],
      ],
    );
    assert.equal(total, 6);
    const first = items.at(-1)?.push;
    assert.deepEqual(
      [first?.actor, first?.tokenName, first?.at],
      [{ kind: 'token', id: token }, 'laptop', '2026-11-21T11:00:00.000Z'],
    );
    assert.deepEqual([items[0]?.push.actor, items[0]?.push.tokenName], [{ kind: 'user', id: account }, null]);
    for (const [offset, limit] of [
      [0, 2],
      [1, 4],
      [5, 3],
      [6, 3],
      [Number.MAX_SAFE_INTEGER - 100, 100],
    ] as const) {
      const page = await reads.activity(repository, { offset, limit });
      assert.deepEqual(page, { items: items.slice(offset, offset + limit), total }, `page ${offset} ${limit}`);
    }
    const summed = await reads.pushActivity(repository, { before: null, limit: 10, changes: 1 });
    assert.deepEqual(
      summed.map(({ push, counts, first: start, count, changes }) => ({
        ...{ revision: push.revision, start, count, changes: changes.map(({ number }) => number) },
        counts: counts.map(({ kind, thing, count: times }) => `${kind} ${thing} ${times}`).sort(),
      })),
      [
        { revision: 4, start: 4, count: 2, changes: [5], counts: ['restore branch 1', 'restore tag 1'] },
        { revision: 3, start: 3, count: 1, changes: [3], counts: ['delete tag 1'] },
        { revision: 2, start: 2, count: 1, changes: [2], counts: ['force-push branch 1'] },
        { revision: 0, start: 0, count: 2, changes: [1], counts: ['create branch 1', 'create tag 1'] },
      ],
    );
    assert.deepEqual(summed[0]?.changes, items.slice(0, 1));
    const older = await reads.pushActivity(repository, { before: 3, limit: 1, changes: 0 });
    assert.deepEqual(
      older.map(({ push, changes }) => [push.revision, changes]),
      [[2, []]],
    );
    assert.deepEqual(await reads.changes(repository, 1, 3), items.slice(2, 5));
    assert.deepEqual(await reads.changes(repository, 5, 100), items.slice(0, 1));
    assert.deepEqual(await reads.changes(repository, 6, 1), []);
    const pushes = await reads.pushes(repository, [0, 2, 7]);
    assert.deepEqual(
      pushes.toSorted((a, b) => a.revision - b.revision),
      [first, items[3]?.push],
    );
    assert.deepEqual(await reads.pushTips(repository, 1, 2), [
      { number: 1, revision: 0, target: id('1') },
      { number: 2, revision: 2, target: id('3') },
    ]);
    assert.deepEqual(await reads.activity(newUuid(), PAGE), { items: [], total: 0 });
  });

  test('list the changes of wide pushes from any place on, and what they pointed refs to', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const repository = await append.repository(account, 'project');
    const name = (n: number) => `refs/tags/"é${n}`;
    const numbers = Array.from({ length: 40 }, (_, n) => n);
    const kinds = numbers.map((n) => (n % 7 === 3 ? 'delete' : n % 7 === 5 ? 'fast-forward' : 'create'));
    const wide = numbers.map((n) => {
      const [before, after] = [kinds[n] === 'create' ? ZERO_OBJECT_ID : id('a'), id('b')];
      return update(name(n), before, kinds[n] === 'delete' ? ZERO_OBJECT_ID : after, kinds[n] ?? 'create');
    });
    const gone = numbers.map((n) => update(name(n), id('b'), ZERO_OBJECT_ID, 'delete'));
    for (const updates of [wide, gone, wide.slice(0, 1), wide.slice(1, 30)]) {
      await append.push(account, repository, { updates });
    }
    const changes = [wide, gone, wide.slice(0, 1), wide.slice(1, 30)].flatMap((updates, revision) =>
      updates.map(({ ref, before, after, kind }) => ({ revision, ref, before, after, kind })),
    );
    const reads = await current(models);
    const newest = changes.map((change, number) => ({ number, ...change })).reverse();
    for (const [offset, limit] of [
      [0, 110],
      [0, 1],
      [3, 30],
      [29, 2],
      [31, 45],
      [69, 13],
      [100, 100],
    ] as const) {
      const { items, total } = await reads.activity(repository, { offset, limit });
      assert.equal(total, 110);
      assert.deepEqual(
        items.map(({ push: { revision }, ...change }) => ({ revision, ...change })),
        newest.slice(offset, offset + limit),
      );
    }
    const wides = await reads.pushActivity(repository, { before: null, limit: 10, changes: 15 });
    assert.deepEqual(
      wides.map(({ first, count }) => [first, count]),
      [
        [81, 29],
        [80, 1],
        [40, 40],
        [0, 40],
      ],
    );
    for (const { first, count, changes: shown } of wides) {
      const own = newest.filter(({ number }) => number >= first && number < first + count).slice(0, 15);
      assert.deepEqual(
        shown.map(({ push: { revision }, ...change }) => ({ revision, ...change })),
        own,
      );
      const all = await reads.changes(repository, first, count);
      assert.deepEqual([all.length, all[0]?.number, all.at(-1)?.number], [count, first + count - 1, first]);
    }
    const tips = newest.reverse().filter(({ kind }) => kind !== 'delete');
    for (const from of [0, 1, 11, 13, 37, 39, 60, 80, 81, 100]) {
      for (const limit of [1, 5, 34, 100]) {
        const expected = tips.filter(({ number }) => number >= from).slice(0, limit);
        assert.deepEqual(
          await reads.pushTips(repository, from, limit),
          expected.map(({ number, revision, after }) => ({ number, revision, target: after })),
          `from ${from}, ${limit}`,
        );
      }
    }
  });

  test('find a push by its id, if its request had a key, also in a deleted repository', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const [repository, other] = [
      await append.repository(account, 'project'),
      await append.repository(account, 'other'),
    ];
    const [keyed, plain] = [newUuid<PushId>(), newUuid<PushId>()];
    const updates = [update(MAIN, ZERO_OBJECT_ID, id('1'), 'create')];
    await append.push(account, repository, { updates, push_id: plain });
    append.now = timestamp('2026-11-21T11:00:00.000Z');
    const request_digest = 'e'.repeat(64);
    const position = await append.push(account, repository, { updates, push_id: keyed, request_digest });
    await append.append(streamName('repository', repository), account, 'RepositoryClosed', {});
    const reads = await current(models);
    const found = await reads.keyedPush(repository, keyed, position);
    assert.deepEqual(
      { ...found, eventId: null },
      { revision: 1, eventId: null, at: '2026-11-21T11:00:00.000Z', requestDigest: request_digest },
    );
    const [row] = await reads.pushes(repository, [1]);
    assert.equal(found?.eventId, row?.eventId);
    assert.equal(await reads.keyedPush(other, keyed, position), null);
    assert.equal(await reads.keyedPush(repository, plain, position), null);
    assert.equal(await reads.keyedPush(repository, newUuid(), LOG_START), null);
  });

  test('keep the last name of a token that was renamed and revoked, and the changes of a deleted repository', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const repository = await append.repository(account, 'project');
    const token = await append.token(account, 'laptop');
    append.actor = { kind: 'token', id: token };
    await append.push(account, repository, { updates: [update(MAIN, ZERO_OBJECT_ID, id('1'), 'create')] });
    const stream = streamName('accessToken', token);
    await append.append(stream, account, 'AccessTokenUpdated', { name: 'old laptop' });
    await append.append(stream, account, 'AccessTokenUpdated', { grants: ['GIT_HTTP_READ'] });
    await append.append(stream, account, 'AccessTokenRevoked', { reason: 'deleted' });
    await append.append(streamName('repository', repository), account, 'RepositoryClosed', {});
    const { items } = await (await current(models)).activity(repository, PAGE);
    assert.deepEqual(
      items.map(({ push }) => push.tokenName),
      ['old laptop'],
    );
  });
}

function usageContract(open: Open): void {
  const transfer = (
    append: Appender,
    account: AccountId,
    minute: string,
    bytes: number,
    refused = 0,
  ): Promise<unknown> =>
    append.append(streamName('transfer', `${account}-node`), account, 'TransferRecorded', {
      ...{ minute, sent_bytes: bytes, received_bytes: refused, by_reader: [], refused_reads: [] },
    });

  test('count traffic in its calendar month, and storage until the layers leave it, also of a deleted repository', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const first = await append.repository(account, 'first');
    const second = await append.repository(account, 'second');
    append.now = timestamp('2026-11-30T23:59:59.999Z');
    await append.push(account, first, { layer: layer(1_000), received_bytes: 1_100 });
    await transfer(append, account, '2026-11-30T23:59:00.000Z', 5);
    append.now = timestamp('2026-12-01T00:00:00.000Z');
    // Sent in November, appended to the log in December.
    await transfer(append, account, '2026-11-30T23:59:00.000Z', 6);
    await transfer(append, account, '2026-12-01T00:00:00.000Z', 7, 100);
    const stored = layer(2_000);
    await append.push(account, second, { layer: stored, received_bytes: 2_200 });
    await append.push(account, second, { received_bytes: 33 });
    // It sums up the transfer that was counted above, and must not count again.
    await append.append(streamName('usage', account), account, 'UsageRecorded', {
      ...{ day: '2026-12-01', through: null, webhook_attempts: 0, sign_in_failures: 0, details: null },
      transfer: [
        { day: '2026-11-30', sent_bytes: 11, received_bytes: 0, by_reader: [] },
        { day: '2026-12-01', sent_bytes: 7, received_bytes: 100, by_reader: [] },
      ],
    });
    const reads = await current(models);
    append.now = timestamp('2026-11-30T12:00:00.000Z');
    const november = { storageBytes: 3_000, ingressBytes: 1_100, transferBytes: 11 };
    assert.deepEqual(await reads.usageOf(account), november);
    assert.deepEqual(await reads.dailyTraffic(account), [
      { day: '2026-11-30', ingressBytes: 1_100, transferBytes: 11 },
    ]);
    append.now = timestamp('2026-12-01T00:00:00.000Z');
    const december = { storageBytes: 3_000, ingressBytes: 2_333, transferBytes: 7 };
    assert.deepEqual(await reads.usageOf(account), december);
    append.now = timestamp('2026-12-31T23:59:00.000Z');
    await transfer(append, account, '2026-12-31T23:58:00.000Z', 70, 9);
    await current(models);
    assert.deepEqual(await reads.dailyTraffic(account), [
      { day: '2026-12-01', ingressBytes: 2_333, transferBytes: 7 },
      { day: '2026-12-31', ingressBytes: 9, transferBytes: 70 },
    ]);
    const { ingressBytes, transferBytes } = await reads.usageOf(account);
    assert.deepEqual({ ingressBytes, transferBytes }, { ingressBytes: 2_342, transferBytes: 77 });
    assert.deepEqual(await reads.dailyTraffic(newUuid()), []);
    await append.deleteRepository(account, second, 'second');
    await current(models);
    const deleted = { ...december, ingressBytes: 2_342, transferBytes: 77 };
    assert.deepEqual(await reads.usageOf(account), deleted, 'its layers are still there');
    assert.equal(await reads.deletedStorageBytes(account), 2_000, 'as a part of the storage');
    await append.restoreRepository(account, second, 'second', {
      default_branch: null,
      size_bytes: 2_000,
      pushed_at: null,
    });
    await current(models);
    assert.deepEqual(await reads.usageOf(account), deleted, 'an undeletion changes nothing');
    assert.equal(await reads.deletedStorageBytes(account), 0);
    await append.deleteRepository(account, second, 'second');
    await current(models);
    assert.equal(await reads.deletedStorageBytes(account), 2_000);
    await append.append(streamName('repository', second), account, 'LayersExpired', {
      ...{ layers: [{ id: stored.id, size_bytes: 2_000, current: true }], reason: 'purge' },
      ...{ compacted_at: null, shrink_epoch: 1 },
    });
    await current(models);
    assert.deepEqual(await reads.usageOf(account), { ...deleted, storageBytes: 1_000 });
    assert.equal(await reads.deletedStorageBytes(account), 0, 'the purge has freed it');
    assert.equal(await reads.deletedStorageBytes(newUuid()), 0);
    append.now = timestamp('2027-01-01T00:00:00.000Z');
    const january = { storageBytes: 1_000, ingressBytes: 0, transferBytes: 0 };
    assert.deepEqual(await reads.usageOf(account), january);
    const nobody = { storageBytes: 0, ingressBytes: 0, transferBytes: 0 };
    assert.deepEqual(await reads.usageOf(newUuid()), nobody);
  });

  test('do not count the storage of repositories in buckets of users, and count their traffic', async (context) => {
    const models = await open(context);
    const { append } = models;
    const account = await append.account('ada');
    const bucket = newUuid();
    const own = await append.repository(account, 'own', { storage_bucket_id: bucket });
    const other = await append.repository(account, 'other');
    const stored = layer(1_000);
    await append.push(account, own, { layer: stored, received_bytes: 1_100 });
    await append.push(account, other, { layer: layer(200), received_bytes: 220 });
    const reads = await current(models);
    const used = { storageBytes: 200, ingressBytes: 1_320, transferBytes: 0 };
    assert.deepEqual(await reads.usageOf(account), used);
    const inBucket = { storageBucketId: bucket, repositories: 1, storageBytes: 1_000 };
    assert.deepEqual(await reads.bucketStorage(account), [inBucket]);
    assert.deepEqual(await reads.bucketStorage(newUuid()), []);
    const { items } = await reads.repositories(account, [own], PAGE);
    assert.equal(items[0]?.sizeBytes, 1_000, 'its own size is known');
    await append.deleteRepository(account, own, 'own');
    await current(models);
    assert.deepEqual(await reads.usageOf(account), used);
    assert.deepEqual(await reads.bucketStorage(account), [{ ...inBucket, repositories: 0 }], 'it still lies there');
    assert.equal(await reads.deletedStorageBytes(account), 0, 'what lies in a bucket is no part of the storage');
    await append.append(streamName('repository', own), account, 'LayersExpired', {
      ...{ layers: [{ id: stored.id, size_bytes: 1_000, current: true }], reason: 'purge' },
      ...{ compacted_at: null, shrink_epoch: 1 },
    });
    await current(models);
    assert.deepEqual(await reads.usageOf(account), used);
    assert.deepEqual(await reads.bucketStorage(account), []);
  });
}
