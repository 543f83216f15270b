/** Repositories over REST, as docs/interface.md, Repositories, specifies them. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { PAGE_NUMBER_MAX } from '../../../apps/api/schemas/common.ts';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

describe('repositories', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let token: TestToken;

  beforeAll(async () => {
    fixture = await createApiFixture({
      plans: { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, repos: 1 } },
    });
    owner = await fixture.account('ada');
    token = await fixture.token(owner);
  });
  afterAll(() => fixture.close());

  const create = (body: object) => fixture.request('POST', '/v1/repositories', token, { body });

  test('are created with all fields', async () => {
    const answer = await create({ name: 'Engine', description: 'Analytical', default_branch: 'trunk' });
    assert.equal(answer.statusCode, 201);
    const repository = answer.json();
    assert.match(repository.id, /^[0-9a-f-]{36}$/);
    assert.deepEqual(repository, {
      id: repository.id,
      name: 'Engine',
      username: 'ada',
      full_name: 'ada/Engine',
      description: 'Analytical',
      default_branch: 'trunk',
      html_url: 'http://localhost:8080/ada/Engine',
      clone_url: 'http://localhost:8080/r/ada/Engine.git',
      owner: { id: owner, username: 'ada' },
      storage_bucket_id: null,
      size_bytes: 0,
      created_at: fixture.clock.now(),
      pushed_at: null,
    });
    const read = await fixture.request('GET', '/v1/repos/ADA/engine', token);
    assert.deepEqual(read.json(), repository);
  });

  test('have the default branch master until another is set', async () => {
    assert.equal((await create({ name: 'plain' })).json().default_branch, 'master');
  });

  test('are refused with 409 for a name that differs from a taken one only in case', async () => {
    await create({ name: 'Taken' });
    const answer = await create({ name: 'tAKEN' });
    assert.equal(answer.statusCode, 409);
    assert.deepEqual(answer.json(), { detail: 'A repository with this name exists already' });
  });

  test('are refused with 422 and the field for invalid names', async () => {
    for (const name of [
      '',
      '.hidden',
      '-dash',
      'a..b',
      'x.GIT',
      'x.lock',
      'end.',
      'a/b',
      'ä',
      'a b',
      'n'.repeat(101),
    ]) {
      const answer = await create({ name });
      assert.equal(answer.statusCode, 422, name);
      const [fault] = answer.json().detail;
      assert.deepEqual(fault.loc, ['body', 'name'], name);
      assert.equal(fault.type, 'repository-name-invalid');
    }
    assert.equal((await create({ name: 'n'.repeat(100) })).statusCode, 201);
  });

  test('count the characters of a description, not its code units', async () => {
    assert.equal((await create({ name: 'long', description: '😀'.repeat(1_000) })).statusCode, 201);
    const answer = await create({ name: 'longer', description: '😀'.repeat(1_001) });
    assert.equal(answer.statusCode, 422);
    assert.deepEqual(answer.json().detail[0].loc, ['body', 'description']);
  });

  test('refuse a default branch whose name is not a valid branch', async () => {
    for (const branch of ['HEAD', '-x', 'a..b', 'a b', 'f'.repeat(40), '']) {
      const answer = await create({ name: 'branchy', default_branch: branch });
      assert.equal(answer.statusCode, 422, branch);
      assert.deepEqual(answer.json().detail[0].loc, ['body', 'default_branch']);
    }
  });

  test('answer 404 for an unknown storage bucket, 422 for a malformed id, and take null as platform storage', async () => {
    const unknown = await create({ name: 'bucket', storage_bucket_id: '11111111-1111-4111-8111-111111111111' });
    assert.equal(unknown.statusCode, 404);
    assert.deepEqual(unknown.json(), { detail: 'Storage bucket not found' });
    assert.equal((await create({ name: 'bucket', storage_bucket_id: 'x' })).statusCode, 422);
    assert.equal((await create({ name: 'bucket', storage_bucket_id: null })).statusCode, 201);
  });

  test('refuse unknown members, each by its name', async () => {
    const answer = await create({ name: 'extra', color: 'blue', ['__proto__']: { name: 'x' } });
    assert.equal(answer.statusCode, 422);
    const detail = answer.json().detail as readonly { readonly loc: readonly string[]; readonly type: string }[];
    assert.deepEqual(
      detail.map(({ loc, type }) => [...loc, type]),
      [
        ['body', 'color', 'unrecognized_keys'],
        ['body', '__proto__', 'unrecognized_keys'],
      ],
    );
  });

  test('are listed by name without regard to case, in pages', async () => {
    const account = await fixture.account('lister');
    const lister = await fixture.token(account);
    for (const name of ['b', 'A', 'c']) await fixture.repository(account, name);
    const page = async (query: string) => (await fixture.request('GET', `/v1/repositories${query}`, lister)).json();
    const first = await page('?limit=2');
    assert.deepEqual(
      first.repositories.map(({ name }: { name: string }) => name),
      ['A', 'b'],
    );
    assert.deepEqual(first.pagination, { page: 0, limit: 2, total: 3, has_more: true });
    const last = await page('?limit=2&page=1');
    assert.deepEqual(
      last.repositories.map(({ name }: { name: string }) => name),
      ['c'],
    );
    assert.deepEqual(last.pagination, { page: 1, limit: 2, total: 3, has_more: false });
    const beyond = await page(`?page=${PAGE_NUMBER_MAX}`);
    assert.deepEqual(beyond.repositories, []);
    assert.deepEqual(beyond.pagination, { page: PAGE_NUMBER_MAX, limit: 50, total: 3, has_more: false });
  });

  test('are listed only within the scope of the token', async () => {
    const account = await fixture.account('selecting');
    const one = await fixture.repository(account, 'one');
    await fixture.repository(account, 'two');
    const selected = await fixture.token(account, { scope: 'SELECTED_REPO', repositoryIds: [one.id] });
    const list = (await fixture.request('GET', '/v1/repositories', selected)).json();
    assert.deepEqual(
      list.repositories.map(({ name }: { name: string }) => name),
      ['one'],
    );
    assert.equal(list.pagination.total, 1);
  });

  test('refuse pages and limits outside their bounds with 422 and the parameter', async () => {
    const faulty = ['limit=0', 'limit=101', 'limit=x', 'limit=1.5', 'limit=', 'limit=-1', 'limit=1&limit=2'];
    for (const query of [...faulty, 'page=-1', 'page=0x10', 'page=1e3', 'page= 1', `page=${PAGE_NUMBER_MAX + 1}`]) {
      const answer = await fixture.request('GET', `/v1/repositories?${query}`, token);
      assert.equal(answer.statusCode, 422, query);
      assert.deepEqual(answer.json().detail[0].loc, ['query', query.split('=', 1)[0]], query);
    }
    const beyond = await fixture.request('GET', `/v1/repositories?page=${PAGE_NUMBER_MAX + 1}`, token);
    assert.equal(beyond.json().detail[0].msg, `Expected a whole number from 0 to ${PAGE_NUMBER_MAX}`);
  });

  test('change their description and default branch independently', async () => {
    await create({ name: 'changing', description: 'before' });
    const patch = async (body: object) =>
      (await fixture.request('PATCH', '/v1/repos/ada/changing', token, { body })).json();
    assert.equal((await patch({ default_branch: 'trunk' })).description, 'before');
    const changed = await patch({ description: null });
    assert.equal(changed.default_branch, 'trunk');
    assert.equal(changed.description, null);
    assert.deepEqual(await patch({}), changed);
  });

  test('are renamed with their other fields as they were, and listed under the new name alone', async () => {
    const account = await fixture.account('renaming');
    const all = await fixture.token(account);
    const { id } = await fixture.repository(account, 'before');
    const answer = await fixture.request('PATCH', '/v1/repos/renaming/before', all, { body: { name: 'After' } });
    assert.equal(answer.statusCode, 200);
    const { name, full_name, html_url, clone_url, ...rest } = answer.json();
    assert.deepEqual(
      [rest.id, name, full_name, html_url, clone_url],
      [
        ...[id, 'After', 'renaming/After', 'http://localhost:8080/renaming/After'],
        'http://localhost:8080/r/renaming/After.git',
      ],
    );
    assert.deepEqual((await fixture.request('GET', '/v1/repos/renaming/after', all)).json(), answer.json());
    const list = (await fixture.request('GET', '/v1/repositories', all)).json();
    assert.deepEqual(list.repositories, [answer.json()]);
    const back = await fixture.request('PATCH', '/v1/repos/renaming/after', all, { body: { name: 'before' } });
    assert.equal(back.json().name, 'before', 'a rename is undone by a rename');
  });

  test('are not renamed to a name in use, or to one that is not valid', async () => {
    await create({ name: 'in-use' });
    await create({ name: 'stays' });
    const patch = (name: string) => fixture.request('PATCH', '/v1/repos/ada/stays', token, { body: { name } });
    const taken = await patch('IN-USE');
    assert.deepEqual([taken.statusCode, taken.json()], [409, { detail: 'A repository with this name exists already' }]);
    const invalid = await patch('a..b');
    assert.equal(invalid.statusCode, 422);
    assert.deepEqual(invalid.json().detail[0].loc, ['body', 'name']);
    assert.equal((await fixture.request('GET', '/v1/repos/ada/stays', token)).statusCode, 200);
  });

  // The attack: a token of few repositories takes the name by which others still reach another one.
  test('take an old name of another only by a token of all repositories, also of one that the token sees', async () => {
    const account = await fixture.account('leading');
    const all = await fixture.token(account);
    const moved = await fixture.repository(account, 'moved');
    const mine = await fixture.repository(account, 'mine');
    await fixture.request('PATCH', '/v1/repos/leading/moved', all, { body: { name: 'moved-on' } });
    const body = { name: 'MOVED' };
    for (const repositoryIds of [[mine.id], [mine.id, moved.id]]) {
      const selected = await fixture.token(account, { scope: 'SELECTED_REPO', repositoryIds });
      const refused = await fixture.request('PATCH', '/v1/repos/leading/mine', selected, { body });
      assert.equal(refused.statusCode, 409);
      assert.deepEqual(refused.json(), { detail: 'A repository with this name exists already' });
    }
    const own = await fixture.token(account, { scope: 'SELECTED_REPO', repositoryIds: [moved.id] });
    const back = await fixture.request('PATCH', '/v1/repos/leading/moved-on', own, { body });
    assert.equal(back.statusCode, 200, 'its own old name is its to take');
    await fixture.request('PATCH', '/v1/repos/leading/moved', all, { body: { name: 'moved-on' } });
    assert.equal((await fixture.request('PATCH', '/v1/repos/leading/mine', all, { body })).statusCode, 200);
  });

  test('are reached by old names with 308, whatever the method, by whoever sees them and nobody else', async () => {
    const account = await fixture.account('moving');
    const all = await fixture.token(account);
    const { id } = await fixture.repository(account, 'old');
    const other = await fixture.repository(account, 'other');
    const rename = (from: string, name: string) =>
      fixture.request('PATCH', `/v1/repos/moving/${from}`, all, { body: { name } });
    await rename('old', 'older');
    await rename('older', 'new');
    for (const [method, from, to] of [
      ['GET', '/v1/repos/moving/old', '/v1/repos/moving/new'],
      ['GET', '/v1/repos/MOVING/OLD/branches?limit=1&page=%30', '/v1/repos/moving/new/branches?limit=1&page=%30'],
      ['GET', '/v1/repos/moving/older/contents/%ff%2f?ref=a', '/v1/repos/moving/new/contents/%ff%2f?ref=a'],
      ['PATCH', '/v1/repos/moving/ol%64', '/v1/repos/moving/new'],
      ['DELETE', '/v1/repos/moving/old', '/v1/repos/moving/new'],
      ['POST', '/v1/repos/moving/old/refs', '/v1/repos/moving/new/refs'],
    ] as const) {
      const answer = await fixture.request(method, from, all, method === 'GET' ? {} : { body: {} });
      assert.deepEqual([answer.statusCode, answer.headers.location], [308, to], from);
      assert.deepEqual(answer.json(), { detail: 'The repository is moving/new now' });
      assert.equal(answer.headers['cache-control'], 'no-store');
    }
    assert.equal((await fixture.request('GET', '/v1/repos/moving/new', all)).json().id, id, 'DELETE deleted nothing');
    const seen = await fixture.token(account, { scope: 'SELECTED_REPO', repositoryIds: [id] });
    assert.equal((await fixture.request('GET', '/v1/repos/moving/old', seen)).statusCode, 308);
    const unseen = await fixture.token(account, { scope: 'SELECTED_REPO', repositoryIds: [other.id] });
    const stranger = await fixture.token(await fixture.account('stranger'));
    for (const caller of [unseen, stranger]) {
      const [hidden, missing] = [
        await fixture.request('GET', '/v1/repos/moving/old', caller),
        await fixture.request('GET', '/v1/repos/moving/nothing', caller),
      ];
      assert.deepEqual([hidden.statusCode, hidden.json()], [404, missing.json()]);
      assert.equal(hidden.headers.location, undefined);
    }
    assert.equal((await fixture.request('GET', '/v1/repos/moving/old', null)).statusCode, 401);
    const powerless = await fixture.token(account, { grants: ['GIT_HTTP_READ'] });
    assert.equal((await fixture.request('GET', '/v1/repos/moving/old', powerless)).statusCode, 403);
  });

  test('are not reached by an old name that another one took, even after that one is gone', async () => {
    const account = await fixture.account('taking');
    const all = await fixture.token(account);
    await fixture.repository(account, 'old');
    await fixture.request('PATCH', '/v1/repos/taking/old', all, { body: { name: 'new' } });
    const made = await fixture.request('POST', '/v1/repositories', all, { body: { name: 'OLD' } });
    assert.equal(made.statusCode, 201);
    assert.equal((await fixture.request('GET', '/v1/repos/taking/old', all)).json().id, made.json().id);
    assert.equal((await fixture.request('DELETE', '/v1/repos/taking/old', all)).statusCode, 204);
    assert.equal((await fixture.request('GET', '/v1/repos/taking/old', all)).statusCode, 404);
  });

  test('are deleted, and their name is then free for a new repository', async () => {
    const first = (await create({ name: 'gone' })).json();
    const selected = await fixture.token(owner, { scope: 'SELECTED_REPO', repositoryIds: [first.id] });
    assert.equal((await fixture.request('GET', '/v1/repos/ada/gone', selected)).statusCode, 200);
    const deleted = await fixture.request('DELETE', '/v1/repos/ada/gone', token);
    assert.equal(deleted.statusCode, 204);
    assert.equal(deleted.body, '');
    assert.equal((await fixture.request('GET', '/v1/repos/ada/gone', token)).statusCode, 404);
    assert.equal((await fixture.request('DELETE', '/v1/repos/ada/gone', token)).statusCode, 404);
    const second = (await create({ name: 'gone' })).json();
    assert.notEqual(second.id, first.id);
    assert.equal((await fixture.request('GET', '/v1/repos/ada/gone', selected)).statusCode, 404);
  });

  test('are refused beyond the quota of the plan, with 422 and the quota', async () => {
    const free = await fixture.account('free', 'FREE');
    const freeToken = await fixture.token(free);
    const post = (name: string) => fixture.request('POST', '/v1/repositories', freeToken, { body: { name } });
    assert.equal((await post('one')).statusCode, 201);
    const answer = await post('two');
    assert.equal(answer.statusCode, 422);
    assert.deepEqual(answer.json(), { detail: "The plan's quota of 1 repositories is reached" });
    const usage = (await fixture.request('GET', '/v1/account/usage', freeToken)).json();
    assert.deepEqual(usage.repos, { used: 1, quota: 1 });
    assert.deepEqual(usage.transfer_bytes, { used: 0, quota: DEFAULT_PLANS.FREE.transfer_bytes });
  });

  test('show the bytes pushed this month in the usage', async () => {
    const account = await fixture.account('pusher');
    const pusher = await fixture.token(account);
    const repository = await fixture.repository(account, 'pushed');
    const tree = fixture.objects.tree({});
    await fixture.push(repository, { 'refs/heads/main': fixture.objects.commit({ tree, seconds: 1 }) });
    const usage = (await fixture.request('GET', '/v1/account/usage', pusher)).json();
    assert.deepEqual(usage.ingress_bytes, { used: 1_000, quota: null });
    fixture.context.transfer.add({
      ...{ account, reader: { kind: 'token', id: pusher.id }, repository: repository.id, sentBytes: 77, address: '' },
    });
    const counted = (await fixture.request('GET', '/v1/account/usage', pusher)).json();
    assert.deepEqual(counted.transfer_bytes, { used: 77, quota: null });
    await fixture.context.transfer.flush();
    const flushed = (await fixture.request('GET', '/v1/account/usage', pusher)).json();
    assert.deepEqual(flushed.transfer_bytes, { used: 77, quota: null });
  });
});
