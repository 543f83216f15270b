/** The changes of refs over REST. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { PAGE_LIMIT_MAX } from '../../../apps/api/schemas/common.ts';
import type { AccountId, ObjectId } from '../../../core/kernel/ids.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

const ZERO = '0'.repeat(40);

describe('GET /v1/repos/{username}/{name}/activity', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  let repository: FoundRepository;
  const ids: ObjectId[] = [];

  beforeAll(async () => {
    fixture = await createApiFixture();
    account = await fixture.account('ada');
    token = await fixture.token(account);
    repository = await fixture.repository(account, 'project');
    const tree = fixture.objects.tree({});
    for (let seconds = 1; seconds <= 3; seconds += 1) ids.push(fixture.objects.commit({ tree, seconds }));
    const [first = null, second = null] = ids;
    await fixture.push(repository, { 'refs/heads/main': first, 'refs/tags/v1': first });
    await fixture.push(repository, { 'refs/heads/main': second });
    await fixture.push(repository, { 'refs/tags/v1': null });
  });
  afterAll(() => fixture.close());

  const get = (query = '', by: TestToken | null = token, path = 'ada/project') =>
    fixture.request('GET', `/v1/repos/${path}/activity${query}`, by);

  test('answers each change of a ref, newest first, with the event and who caused it', async () => {
    const answer = await get();
    assert.equal(answer.statusCode, 200, answer.body);
    const { activity, pagination } = answer.json();
    assert.deepEqual(pagination, { page: 0, limit: 50, total: 4, has_more: false });
    assert.deepEqual(
      activity.map((change: Record<string, string>) => [
        change['ref'],
        change['before'],
        change['after'],
        change['kind'],
      ]),
      [
        ['refs/tags/v1', ids[0], ZERO, 'delete'],
        ['refs/heads/main', ids[0], ids[1], 'force-push'],
        ['refs/tags/v1', ZERO, ids[0], 'create'],
        ['refs/heads/main', ZERO, ids[0], 'create'],
      ],
    );
    const [newest, , third, oldest] = activity;
    assert.equal(third.id, oldest.id, 'one push is one event');
    assert.notEqual(newest.id, oldest.id);
    assert.deepEqual([newest.actor, newest.at], [{ kind: 'admin', id: 'test' }, fixture.clock.now()]);
    assert.deepEqual(Object.keys(newest), ['id', 'at', 'actor', 'ref', 'before', 'after', 'kind']);
  });

  test('answers pages', async () => {
    const { activity } = (await get()).json();
    const second = (await get('?page=1&limit=3')).json();
    assert.deepEqual(second.activity, activity.slice(3));
    assert.deepEqual(second.pagination, { page: 1, limit: 3, total: 4, has_more: false });
    assert.deepEqual((await get(`?page=9&limit=${PAGE_LIMIT_MAX}`)).json().activity, []);
    for (const query of [`?limit=${PAGE_LIMIT_MAX + 1}`, '?page=-1']) {
      assert.equal((await get(query)).statusCode, 422, query);
    }
  });

  test('answers an empty list for a repository without pushes', async () => {
    await fixture.repository(account, 'empty');
    const { activity, pagination } = (await get('', token, 'ada/empty')).json();
    assert.deepEqual([activity, pagination.total], [[], 0]);
  });

  // The attack: a token for reading code asks which commits were forced away, to read a secret that was pushed once.
  test('is refused to a token without ALL and ALL_REPO, and names no repository that the token does not see', async () => {
    const reader = await fixture.token(account, { grants: ['API_COMMITS_READ'] });
    assert.deepEqual(
      [(await get('', reader)).statusCode, (await get('', reader)).json().detail],
      [403, 'This token lacks the grant ALL'],
    );
    const selected = await fixture.token(account, { scope: 'SELECTED_REPO', repositoryIds: [repository.id] });
    assert.equal((await get('', selected)).statusCode, 403);
    const stranger = await fixture.token(await fixture.account('eve'));
    const [theirs, nothing] = [await get('', stranger), await get('', stranger, 'ada/nothing')];
    assert.deepEqual([theirs.statusCode, theirs.body], [404, nothing.body]);
    assert.equal((await get('', null)).statusCode, 401);
    // What the list names stays out of reach.
    const forced = ids[0] ?? '';
    const read = await fixture.request('GET', `/v1/repos/ada/project/commits?ref=${forced}`, token);
    assert.equal(read.statusCode, 404);
  });
});
