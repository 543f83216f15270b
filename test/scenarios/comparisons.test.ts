/** Comparisons, commits as text and short ids over REST, beside what git says: real server, real git, real push. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { alikeCommits } from '../support/alike-commits.ts';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

interface Compared {
  readonly ahead: number;
  readonly behind: number;
  readonly merge_base: string | null;
  readonly commits: readonly { readonly hexsha: string; readonly parents: readonly string[] }[];
  readonly files: readonly { readonly path: string; readonly status: string; readonly additions: number | null }[];
  readonly files_truncated: boolean;
  readonly pagination: { readonly total: number | null; readonly has_more: boolean };
}

describe('REST', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let work: string;
  let url: string;

  const said = async (...args: string[]): Promise<string> => (await git(work, args)).trim();
  const get = (place: string, token = ada.token) => api(strata, token, 'GET', `/v1/repos/ada/pair/${place}`);
  const compared = async (place: string): Promise<Compared> => {
    const answer = await get(`compare/${place}`);
    assert.equal(answer.status, 200, `${place}: ${answer.text}`);
    return answer.body as Compared;
  };

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    url = await createRepository(strata, ada, 'pair');
    work = await newWorkTree(ending);
    await commitFile(work, 'shared', '1\n2\n3\n');
    await git(work, ['checkout', '--quiet', '--force', '-b', 'feature/one']);
    await commitFile(work, 'feature', 'a\nb\n');
    await commitFile(work, 'feature', 'a\nb\nc\n');
    await git(work, ['checkout', '--quiet', '--force', 'main']);
    await commitFile(work, 'shared', '1\n2\n');
    await git(work, ['tag', 'v1', 'main']);
    await git(work, ['tag', 'tree', 'main^{tree}']);
    await git(work, ['checkout', '--quiet', '--force', '--orphan', 'apart']);
    await git(work, ['read-tree', '--empty']);
    await commitFile(work, 'alone', 'x\n');
    await git(work, ['push', '--quiet', url, 'main', 'feature/one', 'apart', 'v1', 'tree']);
  });

  describe('compares two refs', () => {
    test('as git rev-list, git merge-base and git diff do, from the merge base with three dots', async () => {
      const pairs = [
        ['main', 'feature/one'],
        ['feature/one', 'main'],
        ['v1', 'refs/heads/feature/one'],
        [await said('rev-parse', 'main'), await said('rev-parse', 'feature/one~1')],
        ['main', 'main'],
      ] as const;
      for (const [base, head] of pairs) {
        const found = await compared(`${base}...${head}`);
        const [behind, ahead] = (await said('rev-list', '--count', '--left-right', `${base}...${head}`)).split('\t');
        assert.deepEqual([found.ahead, found.behind], [Number(ahead), Number(behind)], `${base}...${head}`);
        assert.equal(found.merge_base, await said('merge-base', base, head));
        const commits = (await said('rev-list', `${base}..${head}`)).split('\n').filter((id) => id !== '');
        assert.deepEqual(
          found.commits.map(({ hexsha }) => hexsha),
          commits,
        );
        const files = (await said('diff', '--name-only', `${base}...${head}`))
          .split('\n')
          .filter((name) => name !== '');
        assert.deepEqual(
          found.files.map(({ path }) => path),
          files,
        );
        assert.equal(found.files_truncated, false);
      }
    });

    test('from the base itself with two dots, with the same counts', async () => {
      const [three, two] = [await compared('main...feature/one'), await compared('main..feature/one')];
      assert.deepEqual([two.ahead, two.behind, two.merge_base], [three.ahead, three.behind, three.merge_base]);
      assert.deepEqual(two.commits, three.commits);
      const names = (await said('diff', '--name-only', 'main..feature/one')).split('\n');
      assert.deepEqual(
        two.files.map(({ path }) => path),
        names,
      );
      assert.deepEqual(
        three.files.map(({ path }) => path),
        ['feature'],
      );
    });

    test('without a commit in common: no merge base, and the files of both', async () => {
      const found = await compared('main...apart');
      assert.deepEqual([found.merge_base, found.ahead, found.behind], [null, 1, 3]);
      assert.deepEqual(
        found.files.map(({ path, status }) => [path, status]),
        [
          ['README', 'deleted'],
          ['alone', 'added'],
          ['shared', 'deleted'],
        ],
      );
    });

    test('in the forms of the list of commits and of a commit, in pages', async () => {
      const first = await compared('main...feature/one?limit=1');
      const listed = (await get('commits?ref=feature/one&limit=1')).body as Compared;
      assert.deepEqual(first.commits, listed.commits);
      assert.deepEqual(first.pagination, { page: 0, limit: 1, total: 2, has_more: true });
      const second = await compared('main...feature/one?limit=1&page=1');
      assert.deepEqual([second.commits.length, second.pagination.has_more], [1, false]);
      const commit = (await get(`commits/${await said('rev-parse', 'feature/one~1')}`)).body as Compared;
      assert.deepEqual(Object.keys(first.files[0] ?? {}), Object.keys(commit.files[0] ?? {}));
    });

    test('whose slashes may be encoded, and an empty one is the default branch', async () => {
      const plain = await compared('main...feature/one');
      assert.deepEqual(await compared('main...feature%2Fone'), plain);
      assert.deepEqual(await compared('...feature/one'), plain);
      assert.deepEqual(await compared('feature/one...'), await compared('feature/one...main'));
    });

    test('and refuses what is not one, or names no commit', async () => {
      for (const [place, status, detail] of [
        ['main...nowhere', 404, 'Ref not found: head'],
        ['nowhere...main', 404, 'Ref not found: base'],
        ['main...main~1', 404, 'Ref not found: head'],
        ['main...--output=x', 404, 'Ref not found: head'],
        ['main...tree', 422, 'The ref leads to a tree, not to a commit'],
      ] as const) {
        const { status: found, body } = await get(`compare/${place}`);
        assert.deepEqual([found, body], [status, { detail }], place);
      }
      assert.equal((await get('compare/main')).status, 422);
      assert.equal((await get('compare/main...apart?file=0')).status, 422);
    });

    test('for 20 points, and answers 304 to who has it', async () => {
      const first = await get('compare/main...feature/one');
      const second = await get('compare/main...feature/one');
      const left = ({ headers }: { readonly headers: Headers }) => Number(headers.get('x-ratelimit-remaining'));
      if (left(second) < left(first)) assert.equal(left(first) - left(second), 20);
      const headers = { authorization: `Bearer ${ada.token}`, 'if-none-match': first.headers.get('etag') ?? '' };
      const again = await fetch(`${strata.url}/v1/repos/ada/pair/compare/main...feature/one`, { headers });
      assert.equal(again.status, 304);
      const other = await fetch(`${strata.url}/v1/repos/ada/pair/compare/main..feature/one`, { headers });
      assert.equal(other.status, 200);
    });
  });

  describe('answers what a commit changed as text', () => {
    test('which git applies: also binary files, renames, modes and names with quotes', async () => {
      await git(work, ['checkout', '--quiet', '--force', '-B', 'texts', 'main']);
      const bytes = Buffer.from(Array.from({ length: 3_000 }, (_, index) => (index * 7) % 256));
      const blob = (await git(work, ['hash-object', '-w', '--stdin'], bytes)).trim();
      const [shared = ''] = (await said('rev-parse', 'main:shared')).split('\n');
      await git(work, ['update-index', '--add', '--cacheinfo', `100644,${blob},binary`]);
      await git(work, ['update-index', '--force-remove', 'shared']);
      await git(work, ['update-index', '--add', '--cacheinfo', `100755,${shared},moved "name"`]);
      await git(work, ['commit', '--quiet', '-m', 'Grüße\n\nA body.']);
      await git(work, ['push', '--quiet', url, 'texts']);
      const id = await said('rev-parse', 'texts');
      const diff = await get(`commits/${id}.diff`);
      assert.deepEqual([diff.status, diff.headers.get('content-type')], [200, 'text/plain; charset=utf-8']);
      assert.match(diff.text, /^rename from shared$/m);
      await git(work, ['checkout', '--quiet', '--force', '--detach', 'main']);
      await git(work, ['apply', '--index'], diff.text);
      assert.equal(await said('write-tree'), await said('rev-parse', 'texts^{tree}'));
      await git(work, ['checkout', '--quiet', '--force', '--detach', 'main']);
      const patch = await get(`commits/${id}.patch`);
      assert.equal(patch.status, 200);
      await git(work, ['am', '--quiet'], patch.text);
      const about = '--format=%T%n%an <%ae> %at%n%B';
      assert.equal(await said('log', '-1', about), await said('log', '-1', about, 'texts'));
    });

    test('of a root commit against nothing', async () => {
      const id = await said('rev-parse', 'apart');
      await git(work, ['checkout', '--quiet', '--force', '--orphan', 'applied']);
      await git(work, ['read-tree', '--empty']);
      await git(work, ['apply', '--cached'], (await get(`commits/${id}.diff`)).text);
      assert.equal(await said('write-tree'), await said('rev-parse', 'apart^{tree}'));
      assert.match((await get(`commits/${id}.patch`)).text, /^From [0-9a-f]{40} .*^\+x$/ms);
    });

    test('of a merge against its first parent; a merge and an empty commit have no patch', async () => {
      await git(work, ['checkout', '--quiet', '--force', '-B', 'merged', 'main']);
      await git(work, ['merge', '--quiet', '--no-ff', '-m', 'Merge', 'feature/one']);
      const merge = await said('rev-parse', 'HEAD');
      await git(work, ['commit', '--quiet', '--allow-empty', '-m', 'Empty']);
      const empty = await said('rev-parse', 'HEAD');
      await git(work, ['push', '--quiet', url, 'merged']);
      const { text } = await get(`commits/${merge}.diff`);
      await git(work, ['checkout', '--quiet', '--force', '--detach', 'main']);
      await git(work, ['apply', '--index'], text);
      assert.equal(await said('write-tree'), await said('rev-parse', `${merge}^{tree}`));
      assert.deepEqual(
        [(await get(`commits/${empty}.diff`)).status, (await get(`commits/${empty}.diff`)).text],
        [200, ''],
      );
      for (const id of [merge, empty]) {
        const refused = await get(`commits/${id}.patch`);
        const detail = 'A merge and a commit that changed no file have no patch: read its .diff';
        assert.deepEqual([refused.status, refused.body], [422, { detail }]);
      }
    });

    test('whose bytes count as transfer, and which is only of commits that a ref reaches', async () => {
      const used = async () => {
        const { body } = await api(strata, ada.token, 'GET', '/v1/account/usage');
        return (body as { readonly transfer_bytes: { readonly used: number } }).transfer_bytes.used;
      };
      const before = await used();
      const id = await said('rev-parse', 'apart');
      const { text, headers } = await get(`commits/${id}.diff`);
      assert.ok((await used()) >= before + text.length);
      const known = { authorization: `Bearer ${ada.token}`, 'if-none-match': headers.get('etag') ?? '' };
      const again = await fetch(`${strata.url}/v1/repos/ada/pair/commits/${id}.diff`, { headers: known });
      assert.equal(again.status, 304);
      for (const wrong of ['0'.repeat(40), 'main', '-p', `${id}~0`]) {
        for (const form of ['diff', 'patch']) {
          assert.equal((await get(`commits/${encodeURIComponent(wrong)}.${form}`)).status, 404, wrong);
        }
      }
    });
  });

  describe('finds a commit by a short id', () => {
    test('of 7 to 39 digits in either case, after branches and tags, wherever a ref is read', async () => {
      const id = await said('rev-parse', 'feature/one');
      for (const short of [id.slice(0, 7), id.slice(0, 12).toUpperCase(), id.slice(0, 39)]) {
        assert.equal((await get(`commits/${short}`)).status, 200, short);
        assert.equal((await get(`commits/${short}.diff`)).status, 200, short);
        for (const place of [`commits?ref=${short}`, `contents?ref=${short}`, `contents/feature?ref=${short}`]) {
          assert.equal((await get(place)).status, 200, place);
        }
        assert.deepEqual(
          (await compared(`main...${short}`)).merge_base,
          (await compared('main...feature/one')).merge_base,
        );
        assert.equal((await get(`archive/${short}.zip`)).status, 200);
      }
      for (const wrong of [id.slice(0, 6), '0'.repeat(7), `${id}0`]) {
        assert.equal((await get(`commits?ref=${wrong}`)).status, 404, wrong);
      }
      // A branch and a tag of this name come first.
      const short = id.slice(0, 9);
      await git(work, ['push', '--quiet', url, `main:refs/tags/${short}`]);
      const named = (await get(`contents?ref=${short}`)).body as { readonly commit: string };
      assert.equal(named.commit, await said('rev-parse', 'main'));
      await git(work, ['push', '--quiet', url, `:refs/tags/${short}`]);
      const found = (await get(`contents?ref=${short}`)).body as { readonly commit: string };
      assert.equal(found.commit, id);
    });

    test('of those that a ref reaches, and names several that begin alike', async () => {
      const { texts, digits } = alikeCommits(await said('rev-parse', 'main^{tree}'));
      const [one = '', two = ''] = await Promise.all(
        texts.map(async (text) => (await git(work, ['hash-object', '-t', 'commit', '-w', '--stdin'], text)).trim()),
      );
      await git(work, ['push', '--quiet', url, `${one}:refs/heads/one`]);
      assert.equal((await get(`commits/${digits}`)).status, 200);
      await git(work, ['push', '--quiet', url, `${two}:refs/heads/two`]);
      const both = [one, two].toSorted();
      for (const place of [`commits/${digits}`, `contents?ref=${digits}`, `compare/main...${digits}`]) {
        const answer = await get(place);
        const detail = `Several commits begin with ${digits}: ${both.join(', ')}`;
        assert.deepEqual([answer.status, answer.body], [422, { detail }], place);
      }
      assert.equal((await get(`commits/${one.slice(0, 20)}`)).status, 200);
      await git(work, ['push', '--quiet', url, ':refs/heads/two']);
      const left = (await get(`contents?ref=${digits}`)).body as { readonly commit: string };
      assert.equal(left.commit, one);
    });

    test('but not in the address of a clone, nor where a commit is written', async () => {
      const short = (await said('rev-parse', 'feature/one')).slice(0, 12);
      assert.notEqual((await tryGit(work, ['fetch', '--quiet', url, short])).code, 0);
      const written = await api(strata, ada.token, 'POST', '/v1/repos/ada/pair/commits', {
        ...{ branch: 'new', expected: '0'.repeat(40), start: short, message: 'x' },
        changes: [{ action: 'put', path: 'file', content: 'text' }],
      });
      assert.equal(written.status, 422, written.text);
    });
  });
});
