/** Deleted repositories over REST: their list, their way back, and their purge. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { DELETED_REPOSITORIES_LISTED_MAX } from '../../../core/kernel/limits.ts';
import type { FailpointName } from '../../../core/ports/failpoints.ts';
import { createDeletionFinisher } from '../../../core/use-cases/repositories/finish-deletions.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { expireDeleted } from '../../../core/use-cases/sweeping/expire-deleted.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { createMemoryPolicyMarks } from '../../support/memory/delivery-store.ts';
import { TEST_RETENTION_MS } from '../../support/past-repositories.ts';

const DAY_MS = 24 * 60 * 60_000;

describe('A deleted repository', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  let repository: FoundRepository;
  let onFailpoint: (point: FailpointName) => Promise<void>;

  beforeEach(async () => {
    onFailpoint = async () => undefined;
    fixture = await createApiFixture({
      failpoint: (point) => onFailpoint(point),
      plans: { ...DEFAULT_PLANS, PRO: { ...DEFAULT_PLANS.PRO, repos: 3 } },
    });
    account = await fixture.account('ada');
    token = await fixture.token(account);
    repository = await fixture.repository(account, 'Project', 'trunk');
    const tip = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
    await fixture.push(repository, { 'refs/heads/trunk': tip });
  });
  afterEach(() => fixture.close());

  const path = (rest: string): string => `/v1/repositories/${repository.id}/${rest}`;
  const post = (rest: string, body?: object, by: TestToken = token) =>
    fixture.request('POST', path(rest), by, body === undefined ? {} : { body });
  const remove = async (name = 'project'): Promise<void> => {
    assert.equal((await fixture.request('DELETE', `/v1/repos/ada/${name}`, token)).statusCode, 204);
  };
  const listed = async (by: TestToken = token) =>
    (await fixture.request('GET', '/v1/repositories/deleted', by)).json().repositories;
  const read = (name: string, by: TestToken = token) => fixture.request('GET', `/v1/repos/ada/${name}`, by);

  test('is listed with the name that it had, until the retention is over', async () => {
    assert.deepEqual(await listed(), []);
    fixture.clock.advance(1_000);
    await remove();
    const at = fixture.clock.now();
    const [one, ...others] = await listed();
    const expires_at = new Date(Date.parse(at) + 30 * DAY_MS).toISOString();
    assert.deepEqual(
      [one, others],
      [
        {
          ...{ id: repository.id, name: 'Project', deleted_at: at, expires_at, size_bytes: 0 },
          ...{ restorable: true, reason: null },
        },
        [],
      ],
    );
    fixture.clock.advance(30 * DAY_MS + 1);
    assert.deepEqual(await listed(), []);
  });

  test('comes back as it was, with the tokens and webhooks that name it', async () => {
    const before = (await read('project')).json();
    const selected = await fixture.token(account, { scope: 'SELECTED_REPO', repositoryIds: [repository.id] });
    const hook = await fixture.webhook(account, { scope: 'SELECTED_REPO', repositoryIds: [repository.id] });
    await remove();
    assert.equal((await read('project', selected)).statusCode, 404);
    const answer = await post('restore');
    assert.equal(answer.statusCode, 200, answer.body);
    assert.deepEqual(answer.json(), before);
    assert.deepEqual((await read('project', selected)).json(), before);
    assert.equal((await fixture.request('GET', `/v1/webhooks/${hook}`, selected)).statusCode, 200);
    const branches = (await fixture.request('GET', '/v1/repos/ada/project/branches', token)).json();
    assert.deepEqual(
      branches.branches.map(({ name }: { name: string }) => name),
      ['trunk'],
    );
    assert.deepEqual(await listed(), []);
    const { repositories } = (await fixture.request('GET', '/v1/repositories', token)).json();
    assert.deepEqual(repositories, [before], 'the list shows it as well');
    await remove();
    assert.equal((await listed()).length, 1, 'it may be deleted again');
    assert.equal((await post('restore')).statusCode, 200);
  });

  test('comes back under another name if its own is taken', async () => {
    await remove();
    await fixture.repository(account, 'PROJECT');
    const taken = await post('restore', {});
    assert.equal(taken.statusCode, 409, taken.body);
    assert.equal((await post('restore', { name: 'a b' })).statusCode, 422);
    const answer = await post('restore', { name: 'project-2' });
    assert.deepEqual(
      [answer.statusCode, answer.json().full_name, answer.json().id],
      [200, 'ada/project-2', repository.id],
    );
  });

  test('comes back with the old names that led to it and that nobody has taken since', async () => {
    const rename = (from: string, name: string) =>
      fixture.request('PATCH', `/v1/repos/ada/${from}`, token, { body: { name } });
    for (const [from, to] of [
      ['project', 'second'],
      ['second', 'third'],
    ] as const) {
      assert.equal((await rename(from, to)).statusCode, 200);
    }
    await remove('third');
    for (const name of ['project', 'second', 'third']) assert.equal((await read(name)).statusCode, 404, name);
    const selected = await fixture.repository(account, 'other');
    const few = await fixture.token(account, { scope: 'SELECTED_REPO', repositoryIds: [selected.id] });
    const body = { name: 'second' };
    const taken = await fixture.request('PATCH', '/v1/repos/ada/other', few, { body });
    assert.equal(taken.statusCode, 200, 'a name that leads nowhere is free');
    assert.equal((await post('restore')).statusCode, 200);
    const old = await read('project');
    assert.deepEqual([old.statusCode, old.headers.location], [308, '/v1/repos/ada/third']);
    assert.equal((await read('second')).json().id, selected.id);
  });

  test('does not come back beyond the quota of repositories', async () => {
    await remove();
    for (const name of ['one', 'two', 'three']) await fixture.repository(account, name);
    assert.equal((await post('restore')).statusCode, 422);
    await remove('three');
    assert.equal((await post('restore')).statusCode, 200);
  });

  // The attack: a stranger, or a token without ALL, takes or destroys a repository by its id.
  test('is out of reach for others', async () => {
    await remove();
    const eve = await fixture.token(await fixture.account('eve'));
    const writer = await fixture.token(account, { grants: ['API_REPOS_WRITE'] });
    assert.deepEqual(await listed(eve), []);
    for (const rest of ['restore', 'purge']) {
      assert.equal((await post(rest, {}, eve)).statusCode, 404);
      assert.equal((await post(rest, {}, writer)).statusCode, 403);
    }
    const nothing = await fixture.request('POST', '/v1/repositories/nothing/restore', token);
    assert.equal(nothing.statusCode, 404);
  });

  test('that is not deleted is not undeleted', async () => {
    assert.equal((await post('restore')).statusCode, 409);
    await remove();
    const answers = await Promise.all(Array.from({ length: 4 }, () => post('restore')));
    const statuses = answers.map(({ statusCode }) => statusCode);
    assert.ok(statuses.includes(200) && statuses.every((status) => status === 200 || status === 409), `${statuses}`);
    assert.equal((await read('project')).statusCode, 200);
  });

  test('is listed again or deleted again if the process dies between the two events', async () => {
    await remove();
    onFailpoint = async (point) => {
      if (point === 'repository-listed-again') throw new Error('killed');
    };
    assert.equal((await post('restore')).statusCode, 500);
    assert.equal((await read('project')).statusCode, 404, 'closed');
    onFailpoint = async () => undefined;
    assert.equal((await post('restore')).statusCode, 200, 'the next request finishes it');
    await remove();
    onFailpoint = async (point) => {
      if (point === 'repository-listed-again') throw new Error('killed');
    };
    assert.equal((await post('restore')).statusCode, 500);
    onFailpoint = async () => undefined;
    const finish = createDeletionFinisher(fixture.context);
    await finish();
    await finish();
    assert.equal((await listed()).length, 1);
    assert.equal((await post('restore', { name: 'other' })).json().name, 'other');
  });

  test('that was purged is gone for good, and its event is named', async () => {
    const tip = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 2 });
    await fixture.push(repository, { 'refs/heads/trunk': tip }, 5_000);
    await remove();
    assert.equal((await listed())[0].size_bytes, 5_000);
    const planned = await post('purge', { dry_run: true });
    assert.deepEqual([planned.statusCode, planned.json()], [200, { event_id: null, freed_bytes: 5_000 }]);
    const purged = await post('purge');
    assert.deepEqual([purged.statusCode, purged.json().freed_bytes], [202, 5_000]);
    const answer = await post('restore');
    assert.equal(answer.statusCode, 410, answer.body);
    assert.ok(answer.json().detail.includes(purged.json().event_id), answer.body);
    assert.deepEqual(await listed(), []);
    assert.deepEqual((await post('purge')).json(), { event_id: null, freed_bytes: 0 });
    await fixture.repository(account, 'project');
  });

  test('that has passed retention is gone for good, and its event is named', async () => {
    const tip = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 2 });
    await fixture.push(repository, { 'refs/heads/trunk': tip }, 5_000);
    await remove();
    const retention = { ...fixture.context, marks: createMemoryPolicyMarks(), retentionMs: TEST_RETENTION_MS };
    const expire = () => expireDeleted(retention, { aborted: false });
    fixture.clock.advance(TEST_RETENTION_MS - 1);
    await expire();
    assert.equal((await listed()).length, 1);
    fixture.clock.advance(1);
    await expire();
    const { stream } = repository.entity;
    const [last] = await fixture.context.events.readStream(stream, { direction: 'backwards', limit: 1 });
    assert.ok(last?.type === 'LayersExpired' && last.data['reason'] === 'retention');
    const answer = await post('restore');
    assert.equal(answer.statusCode, 410, answer.body);
    assert.ok(answer.json().detail.includes(last.id), answer.body);
    assert.deepEqual(await listed(), []);
  });

  test(`is among the last ${DELETED_REPOSITORIES_LISTED_MAX} in the list`, async () => {
    const made: string[] = [];
    for (let count = 0; count <= DELETED_REPOSITORIES_LISTED_MAX; count += 1) {
      fixture.clock.advance(1);
      made.push(await fixture.deletedRepository(account));
    }
    const ids = (await listed()).map(({ id }: { id: string }) => id);
    assert.deepEqual(ids, made.toReversed().slice(0, DELETED_REPOSITORIES_LISTED_MAX));
  });
});
