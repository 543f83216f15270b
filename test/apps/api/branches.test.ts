/** The branch listing over REST. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

describe('branches', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let token: TestToken;

  beforeAll(async () => {
    fixture = await createApiFixture();
    owner = await fixture.account('ada');
    token = await fixture.token(owner);
  });
  afterAll(() => fixture.close());

  const branches = (name: string, headers: Readonly<Record<string, string>> = {}) =>
    fixture.request('GET', `/v1/repos/ada/${name}/branches`, token, { headers });

  test('a repository without commits has no branches, and the default branch it was created with', async () => {
    await fixture.repository(owner, 'empty');
    const empty = await branches('empty');
    assert.equal(empty.statusCode, 200);
    assert.deepEqual(empty.json(), { default_branch: 'master', branches: [] });
    await fixture.repository(owner, 'named', 'trunk');
    assert.deepEqual((await branches('named')).json(), { default_branch: 'trunk', branches: [] });
  });

  test('are listed in byte order with exactly the specified fields', async () => {
    const repository = await fixture.repository(owner, 'full');
    const { objects } = fixture;
    const tree = objects.tree({});
    const author = { name: 'Grace', email: 'grace@example.org' };
    const first = objects.commit({ tree, seconds: 1, message: 'First\n', author });
    const tag = objects.tag(first, 'v1');
    await fixture.push(repository, {
      'refs/heads/ä': first,
      'refs/heads/a': first,
      'refs/heads/Z': first,
      'refs/tags/v1': tag,
    });
    const answer = await branches('full');
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
    const commit = {
      id: uuids.derive(repository.id, first),
      hexsha: first,
      message: 'First\n',
      author,
      committer: { name: 'Ada', email: 'ada@example.org' },
    };
    assert.deepEqual(answer.json(), {
      default_branch: 'master',
      branches: ['Z', 'a', 'ä'].map((name) => ({ name, commit })),
    });
  });

  test('are all listed, in the same form, where there are thousands', async () => {
    const repository = await fixture.repository(owner, 'thousands');
    const commit = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1, message: 'First\n' });
    const names = Array.from({ length: 5_001 }, (_, n) => `b${String(n).padStart(4, '0')}`);
    await fixture.push(repository, Object.fromEntries(names.map((name) => [`refs/heads/${name}`, commit])));
    const { branches: listed } = (await branches('thousands')).json();
    assert.deepEqual(
      listed.map(({ name }: { name: string }) => name),
      names,
    );
    const id = uuids.derive(repository.id, commit);
    assert.ok(listed.every((branch: { commit: { id: string } }) => branch.commit.id === id));
  });

  test('show a push, a deletion and a new default branch together', async () => {
    const repository = await fixture.repository(owner, 'moving');
    const { objects } = fixture;
    const tree = objects.tree({});
    const first = objects.commit({ tree, seconds: 1 });
    const second = objects.commit({ tree, seconds: 2, parents: [first] });
    const tips = async () =>
      (await branches('moving')).json().branches.map((b: { commit: { hexsha: string } }) => b.commit.hexsha);
    assert.deepEqual(await tips(), []);
    await fixture.push(repository, { 'refs/heads/master': first });
    assert.deepEqual(await tips(), [first]);
    await fixture.push(repository, { 'refs/heads/master': second, 'refs/heads/other': first });
    assert.deepEqual(await tips(), [second, first]);
    await fixture.push(repository, { 'refs/heads/master': null });
    assert.deepEqual(await tips(), [first]);
    await fixture.request('PATCH', '/v1/repos/ada/moving', token, { body: { default_branch: 'other' } });
    assert.equal((await branches('moving')).json().default_branch, 'other');
  });

  test('an unchanged listing is 304 for a client that has it, and 200 again after a push', async () => {
    const repository = await fixture.repository(owner, 'tagged');
    const commit = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
    const empty = await branches('tagged');
    const etag = String(empty.headers.etag);
    assert.match(etag, /^"[^"]+"$/);
    for (const header of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await branches('tagged', { 'if-none-match': header });
      assert.equal(answer.statusCode, 304, header);
      assert.equal(answer.body, '');
      assert.equal(answer.headers.etag, etag);
    }
    assert.equal((await branches('tagged', { 'if-none-match': '"other"' })).statusCode, 200);
    await fixture.push(repository, { 'refs/heads/master': commit });
    const pushed = await branches('tagged', { 'if-none-match': etag });
    assert.equal(pushed.statusCode, 200);
    assert.notEqual(pushed.headers.etag, etag);
  });

  test('two repositories with equal history have different entity tags', async () => {
    await fixture.repository(owner, 'twin-a');
    await fixture.repository(owner, 'twin-b');
    assert.notEqual((await branches('twin-a')).headers.etag, (await branches('twin-b')).headers.etag);
  });

  test('are read from the model once for any number of requests at one revision', async () => {
    const repository = await fixture.repository(owner, 'polled');
    const commit = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
    await fixture.push(repository, { 'refs/heads/master': commit });
    const before = fixture.readModels.branchReads();
    await Promise.all(Array.from({ length: 20 }, () => branches('polled')));
    for (let index = 0; index < 5; index += 1) await branches('polled');
    assert.equal(fixture.readModels.branchReads(), before + 1);
  });

  test('an answer is of one revision, even if a push and a new default branch arrive while it is made', async () => {
    let interfere: (() => Promise<void>) | null = null;
    const raced = await createApiFixture({
      beforeRead: async () => {
        const once = interfere;
        interfere = null;
        await once?.();
      },
    });
    const account = await raced.account('eve');
    const acting = await raced.token(account);
    const tree = raced.objects.tree({});
    const first = raced.objects.commit({ tree, seconds: 1 });
    const second = raced.objects.commit({ tree, seconds: 2 });
    for (const [name, path] of [
      ['of-branches', 'branches'],
      ['of-commits', 'commits'],
    ] as const) {
      const repository = await raced.repository(account, name);
      await raced.push(repository, { 'refs/heads/master': first });
      interfere = async () => {
        await raced.push(repository, { 'refs/heads/trunk': second });
        const body = { default_branch: 'trunk' };
        await raced.request('PATCH', `/v1/repos/eve/${name}`, acting, { body });
      };
      const answer = await raced.request('GET', `/v1/repos/eve/${name}/${path}`, acting);
      const again = await raced.request('GET', `/v1/repos/eve/${name}/${path}`, acting);
      assert.equal(answer.statusCode, 200);
      assert.equal(again.body, answer.body);
      assert.equal(again.headers.etag, answer.headers.etag);
      const { default_branch: defaultBranch, branch } = answer.json();
      assert.equal(defaultBranch ?? branch, 'trunk');
    }
    await raced.close();
  });

  test('HEAD answers as GET without the body', async () => {
    await fixture.repository(owner, 'headed');
    const get = await branches('headed');
    const head = await fixture.request('HEAD', '/v1/repos/ada/headed/branches', token);
    assert.equal(head.statusCode, 200);
    assert.equal(head.body, '');
    assert.equal(head.headers['content-length'], get.headers['content-length']);
    assert.equal(head.headers.etag, get.headers.etag);
  });
});
