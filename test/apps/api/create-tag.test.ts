/** New tags over REST. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import type { AccountId, ObjectId } from '../../../core/kernel/ids.ts';
import { LEFT_TIP_SPAN_MS } from '../../../core/kernel/limits.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type FixtureOptions, type TestToken } from '../../support/api-fixture.ts';

const ZERO = '0'.repeat(40);

describe('POST /v1/repos/{username}/{name}/tags', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  let repository: FoundRepository;
  let first: ObjectId;
  let second: ObjectId;

  async function start(options: FixtureOptions = {}): Promise<void> {
    fixture = await createApiFixture(options);
    account = await fixture.account('ada', 'FREE');
    token = await fixture.token(account, { grants: ['GIT_HTTP_WRITE', 'API_COMMITS_READ'] });
    repository = await fixture.repository(account, 'project');
    const tree = fixture.objects.tree({ file: ['100644', fixture.objects.blob('text')] });
    first = fixture.objects.commit({ tree, seconds: 1 });
    second = fixture.objects.commit({ tree, seconds: 2, parents: [first] });
    await fixture.push(repository, { 'refs/heads/main': second });
  }

  beforeEach(() => start());
  afterEach(() => fixture.close());

  const create = (body: object, headers = {}) =>
    fixture.request('POST', '/v1/repos/ada/project/tags', token, { body, headers });
  const listed = async () => {
    const answer = await fixture.request('GET', '/v1/repos/ada/project/tags', token);
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.json().tags;
  };

  test('makes a lightweight tag, and answers it as the list does', async () => {
    const answer = await create({ name: 'v1', target: first, expected: ZERO });
    assert.equal(answer.statusCode, 201, answer.body);
    const { event_id, ...tag } = answer.json();
    assert.equal(typeof event_id, 'string');
    const { name, target, type, annotated } = tag;
    assert.deepEqual([name, target, type, annotated, tag.commit.hexsha], ['v1', first, 'commit', false, first]);
    assert.deepEqual(await listed(), [tag]);
  });

  test('may lead to a tree, a blob or an annotated tag', async () => {
    const { objects } = fixture;
    const annotated = objects.tag(first, 'v0', { message: 'Version 0\n' });
    await fixture.push(repository, { 'refs/tags/v0': annotated });
    for (const [name, target, type] of [
      ['tree', objects.tree({ file: ['100644', objects.blob('text')] }), 'tree'],
      ['blob', objects.blob('text'), 'blob'],
      ['again/v0', annotated, 'commit'],
    ] as const) {
      const answer = await create({ name, target, expected: ZERO });
      assert.deepEqual([answer.statusCode, answer.json().type], [201, type], answer.body);
    }
    const [again] = await listed();
    assert.deepEqual([again.name, again.target, again.message], ['again/v0', first, 'Version 0\n']);
  });

  test('is refused where a tag has the name, and moves it where any may be there', async () => {
    await create({ name: 'v1', target: first, expected: ZERO });
    const refused = await create({ name: 'v1', target: second, expected: ZERO });
    assert.equal(refused.statusCode, 409);
    assert.deepEqual(refused.json(), { detail: 'refs/tags/v1: it exists already', code: 'head-moved', head: first });
    const moved = await create({ name: 'v1', target: second, expected: 'any' });
    assert.deepEqual([moved.statusCode, moved.json().target], [201, second]);
    const same = await create({ name: 'v1', target: second, expected: 'any' });
    assert.deepEqual([same.statusCode, same.json().event_id], [201, null]);
    assert.equal((await listed()).length, 1);
  });

  test('names the field that is wrong', async () => {
    await fixture.push(repository, { 'refs/tags/a/b': first });
    const cases: readonly (readonly [object, string, string])[] = [
      [{ name: 'a..b' }, 'name', 'ref-name-malformed'],
      [{ name: '' }, 'name', 'ref-name-malformed'],
      [{ name: 'HEAD' }, 'name', 'name-ambiguous'],
      [{ name: 'a' }, 'name', 'ref-collides'],
      [{ target: 'e'.repeat(40) }, 'target', 'object-missing'],
      [{ target: 'main' }, 'target', 'custom'],
      [{ expected: first }, 'expected', 'custom'],
      [{ target: 'e'.repeat(40), message: 'About' }, 'target', 'object-missing'],
      [{ name: 'a..b', message: 'About' }, 'name', 'ref-name-malformed'],
      [{ message: '' }, 'message', 'too_small'],
      [{ tagger: { name: 'Grace', email: 'grace@example.org' } }, 'tagger', 'custom'],
    ];
    for (const [part, field, type] of cases) {
      const answer = await create({ name: 'v1', target: first, expected: ZERO, ...part });
      assert.equal(answer.statusCode, 422, answer.body);
      const [fault] = answer.json().detail;
      assert.deepEqual([fault.loc, fault.type], [['body', field], type]);
    }
    assert.equal((await listed()).length, 1);
  });

  // The attack: a writer annotates an object that no ref reaches, to read it by the new tag.
  test('leads to nothing that the caller could not fetch, as to nothing that is not there', async () => {
    const secret = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 9 });
    await fixture.push(repository, { 'refs/heads/secret': secret }, 100);
    await fixture.push(repository, { 'refs/heads/secret': null });
    fixture.clock.advance(LEFT_TIP_SPAN_MS + 1);
    for (const part of [
      {},
      { message: 'About' },
      { message: 'About', name: 'a..b' },
      { message: 'About', name: 'v0' },
    ]) {
      const body = { name: 'v1', expected: ZERO, ...part };
      await fixture.push(repository, { 'refs/tags/v0': first });
      const [hidden, absent] = [
        await create({ ...body, target: secret }),
        await create({ ...body, target: 'e'.repeat(40) }),
      ];
      assert.equal(hidden.statusCode, 422);
      assert.deepEqual(hidden.json(), absent.json());
    }
  });

  test('takes no If-Match, and counts as a change of the month', async () => {
    const body = { name: 'v1', target: first, expected: ZERO };
    assert.equal((await create(body, { 'if-match': '"x"' })).statusCode, 400);
    await fixture.close();
    await start({ plans: { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, changes_per_month: 0 } } });
    assert.equal((await create(body)).statusCode, 429);
    assert.deepEqual(await listed(), []);
  });
});
