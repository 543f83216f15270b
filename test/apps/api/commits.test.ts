/** The commit listing over REST. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import { PAGE_NUMBER_MAX } from '../../../apps/api/schemas/common.ts';
import { COMMIT_LISTED_NAME_LENGTH_MAX } from '../../../core/git/history/listed-commit.ts';
import type { AccountId, ObjectId } from '../../../core/kernel/ids.ts';
import { COMMIT_LISTED_MESSAGE_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

describe('commits', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let token: TestToken;
  let tree: ObjectId;
  let repositories = 0;

  beforeAll(async () => {
    fixture = await createApiFixture();
    owner = await fixture.account('ada');
    token = await fixture.token(owner);
    tree = fixture.objects.tree({});
  });
  afterAll(() => fixture.close());

  async function newRepository(): Promise<FoundRepository> {
    repositories += 1;
    return fixture.repository(owner, `history-${repositories}`);
  }

  /** A linear history of commits, oldest first, whose ids differ from those of every other one. */
  function line(length: number, start = 1, parent: ObjectId | null = null): readonly ObjectId[] {
    const ids: ObjectId[] = parent === null ? [] : [parent];
    for (let index = 0; index < length; index += 1) {
      const last = ids.at(-1);
      const message = `Change ${index} of line ${repositories}, ${start}\n`;
      ids.push(
        fixture.objects.commit({ tree, seconds: start + index, parents: last === undefined ? [] : [last], message }),
      );
    }
    return parent === null ? ids : ids.slice(1);
  }

  const commits = (repository: FoundRepository, query = '', headers: Readonly<Record<string, string>> = {}) =>
    fixture.request('GET', `/v1/repos/ada/${repository.owned.name}/commits${query}`, token, { headers });
  const shas = async (repository: FoundRepository, query = '') =>
    (await commits(repository, query)).json().commits.map((commit: { hexsha: string }) => commit.hexsha);

  test('a repository without commits answers 404 with the specified message', async () => {
    const repository = await newRepository();
    for (const query of ['', '?ref=main', '?ref=master', `?ref=${'a'.repeat(40)}`]) {
      const answer = await commits(repository, query);
      assert.equal(answer.statusCode, 404, query);
      assert.deepEqual(answer.json(), { detail: 'No commit found in the repository' });
    }
  });

  test('texts of commits are cut alike for other refs and for the default branch', async () => {
    const repository = await newRepository();
    const long = 'm'.repeat(COMMIT_LISTED_MESSAGE_LENGTH_MAX);
    const author = { name: 'n'.repeat(COMMIT_LISTED_NAME_LENGTH_MAX + 1) };
    const whole = fixture.objects.commit({ tree, seconds: 1, message: long });
    const cut = fixture.objects.commit({ tree, seconds: 2, parents: [whole], message: `${long}x`, author });
    await fixture.push(repository, { 'refs/heads/side': cut });
    const listed = (await commits(repository, '?ref=side')).json().commits;
    assert.deepEqual(
      listed.map(({ message }: { message: string }) => message),
      [long, long],
    );
    assert.equal(listed[0].author.name.length, COMMIT_LISTED_NAME_LENGTH_MAX);
  });

  test('a default branch that does not exist answers 404 with the branches that do, and these still list', async () => {
    const repository = await newRepository();
    const [only] = line(1);
    assert.ok(only !== undefined);
    await fixture.push(repository, { 'refs/heads/side': only });
    const answer = await commits(repository);
    assert.equal(answer.statusCode, 404);
    assert.deepEqual(answer.json(), { detail: 'The default branch master does not exist. Branches: side' });
    assert.deepEqual(await shas(repository, '?ref=side'), [only]);
    const refs = Array.from({ length: 11 }, (_, index) => [`refs/heads/b${10 + index}`, only]);
    await fixture.push(repository, Object.fromEntries(refs));
    const listed = Array.from({ length: 10 }, (_, index) => `b${10 + index}`).join(', ');
    const detail = `The default branch master does not exist. Branches: ${listed} and 2 more`;
    assert.deepEqual((await commits(repository)).json(), { detail });
  });

  test('are listed with every field, newest first', async () => {
    const repository = await newRepository();
    const { objects } = fixture;
    const author = { name: 'Grace', email: 'grace@example.org', seconds: 1_000_000_000, offsetMinutes: -480 };
    const root = objects.commit({ tree, seconds: 1_100_000_000, message: 'Root\n\nBody.\n', author });
    const tip = objects.commit({ tree, seconds: 1_200_000_000, parents: [root], message: 'Tip\n' });
    await fixture.push(repository, { 'refs/heads/master': tip });
    const ada = { name: 'Ada', email: 'ada@example.org' };
    assert.deepEqual((await commits(repository)).json(), {
      branch: 'master',
      commits: [
        {
          id: uuids.derive(repository.id, tip),
          hexsha: tip,
          message: 'Tip\n',
          author: ada,
          committer: ada,
          authored_at: '2008-01-10T21:20:00.000Z',
          committed_at: '2008-01-10T21:20:00.000Z',
          parents: [root],
        },
        {
          id: uuids.derive(repository.id, root),
          hexsha: root,
          message: 'Root\n\nBody.\n',
          author: { name: 'Grace', email: 'grace@example.org' },
          committer: ada,
          authored_at: '2001-09-09T01:46:40.000Z',
          committed_at: '2004-11-09T11:33:20.000Z',
          parents: [],
        },
      ],
      pagination: { page: 0, limit: 50, total: 2, has_more: false },
    });
  });

  test('pages are the same from the read model and from the objects', async () => {
    const repository = await newRepository();
    const all = line(7);
    const tip = all.at(-1);
    assert.ok(tip !== undefined);
    await fixture.push(repository, { 'refs/heads/master': tip, 'refs/heads/copy': tip });
    const newestFirst = all.toReversed();
    for (const ref of ['', '&ref=copy', '&ref=refs/heads/copy', `&ref=${tip}`]) {
      assert.deepEqual(await shas(repository, `?limit=3${ref}`), newestFirst.slice(0, 3), ref);
      assert.deepEqual(await shas(repository, `?limit=3&page=2${ref}`), newestFirst.slice(6), ref);
      const { pagination } = (await commits(repository, `?limit=3&page=1${ref}`)).json();
      assert.deepEqual(pagination, { page: 1, limit: 3, total: 7, has_more: true });
      const beyond = (await commits(repository, `?page=${PAGE_NUMBER_MAX}&limit=100${ref}`)).json();
      assert.deepEqual(beyond.commits, []);
      assert.deepEqual(beyond.pagination, { page: PAGE_NUMBER_MAX, limit: 100, total: 7, has_more: false });
    }
  });

  test('ref is a branch, a tag or a full commit id, echoed as branch', async () => {
    const repository = await newRepository();
    const [first, second] = line(2);
    assert.ok(first !== undefined && second !== undefined);
    const annotated = fixture.objects.tag(first, 'v1');
    await fixture.push(repository, {
      'refs/heads/master': second,
      'refs/heads/feature/x': first,
      'refs/tags/v1': annotated,
      'refs/tags/light': first,
    });
    for (const ref of ['feature/x', 'feature%2Fx', 'v1', 'light', first, first.toUpperCase(), 'refs/tags/v1']) {
      const answer = await commits(repository, `?ref=${ref}`);
      assert.deepEqual(
        answer.json().commits.map((commit: { hexsha: string }) => commit.hexsha),
        [first],
        ref,
      );
      assert.equal(answer.json().branch, decodeURIComponent(ref));
    }
  });

  test('a name of both a branch and a tag means the branch; the full name means the tag', async () => {
    const repository = await newRepository();
    const [first, second] = line(2);
    assert.ok(first !== undefined && second !== undefined);
    await fixture.push(repository, { 'refs/heads/same': second, 'refs/tags/same': first });
    assert.deepEqual(await shas(repository, '?ref=same'), [second, first]);
    assert.deepEqual(await shas(repository, '?ref=refs/tags/same'), [first]);
    assert.deepEqual(await shas(repository, '?ref=refs/heads/same'), [second, first]);
  });

  test('the default branch is listed even if a tag has its name', async () => {
    const repository = await newRepository();
    const [first, second] = line(2);
    assert.ok(first !== undefined && second !== undefined);
    await fixture.push(repository, { 'refs/heads/master': second, 'refs/tags/master': first });
    assert.deepEqual(await shas(repository, '?ref=master'), [second, first]);
    await fixture.push(repository, { 'refs/heads/master': null });
    assert.deepEqual(await shas(repository, '?ref=master'), [first]);
    assert.equal((await commits(repository)).statusCode, 404);
  });

  test('a hostile ref matches nothing', async () => {
    const repository = await newRepository();
    const [first, second] = line(2);
    assert.ok(first !== undefined && second !== undefined);
    const tree = fixture.objects.tree({});
    const treeTag = fixture.objects.tag(tree, 'tree');
    await fixture.push(repository, { 'refs/heads/master': second, 'refs/tags/tree': treeTag });
    const refs = [
      ...['head', 'master~1', 'master^', 'master@{1}', '@', ':/Change', 'master..v1', second.slice(0, 6)],
      ...[
        '--output=/tmp/x',
        '--upload-pack=touch /tmp/x',
        '-n1',
        '../../etc/passwd',
        'refs/heads',
        'a\0b',
        '\u{1f600}',
      ],
      ...[tree, treeTag, '0'.repeat(40), 'f'.repeat(40), 'x'.repeat(10_000)],
    ];
    for (const ref of refs) {
      const answer = await commits(repository, `?ref=${encodeURIComponent(ref)}`);
      assert.equal(answer.statusCode, 404, ref);
      assert.deepEqual(answer.json(), { detail: 'Ref not found' }, ref);
    }
    assert.equal((await commits(repository, '?ref=%FF%FE')).statusCode, 404);
  });

  test('a commit that only a deleted branch reached is not found, though its object still exists', async () => {
    const repository = await newRepository();
    const [kept, lost] = line(2);
    assert.ok(kept !== undefined && lost !== undefined);
    await fixture.push(repository, { 'refs/heads/master': kept, 'refs/heads/gone': lost });
    assert.deepEqual(await shas(repository, `?ref=${lost}`), [lost, kept]);
    await fixture.push(repository, { 'refs/heads/gone': null });
    const answer = await commits(repository, `?ref=${lost}`);
    assert.equal(answer.statusCode, 404);
    assert.deepEqual(await shas(repository, `?ref=${kept}`), [kept]);
  });

  test('an unchanged page is 304, a push makes it 200', async () => {
    const repository = await newRepository();
    const [first, second] = line(2);
    assert.ok(first !== undefined && second !== undefined);
    await fixture.push(repository, { 'refs/heads/master': first });
    const etag = String((await commits(repository)).headers.etag);
    assert.equal((await commits(repository, '', { 'if-none-match': etag })).statusCode, 304);
    await fixture.push(repository, { 'refs/heads/master': second });
    const pushed = await commits(repository, '', { 'if-none-match': etag });
    assert.equal(pushed.statusCode, 200);
    assert.deepEqual(
      pushed.json().commits.map((commit: { hexsha: string }) => commit.hexsha),
      [second, first],
    );
  });

  test('dates outside the range of RFC 3339 are clamped to it', async () => {
    const repository = await newRepository();
    const far = fixture.objects.commit({ tree, seconds: 1e15, author: { seconds: -5 } });
    await fixture.push(repository, { 'refs/heads/master': far });
    const [commit] = (await commits(repository)).json().commits;
    assert.equal(commit.committed_at, '9999-12-31T23:59:59.000Z');
    assert.equal(commit.authored_at, '1970-01-01T00:00:00.000Z');
  });

  test('leave no object reader open', () => {
    assert.equal(fixture.objects.openReaders(), 0);
  });
});
