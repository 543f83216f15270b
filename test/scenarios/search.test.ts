/** Searches over REST in what real git pushed, compared with `git ls-files`, `git grep` and `git log`. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { COMMIT_SEARCH_LENGTH_MAX } from '../../core/use-cases/reading/list-commits.ts';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  type ApiAnswer,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

interface Match {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

interface Search {
  readonly matches: readonly Match[];
  readonly complete: boolean;
  readonly searched_files: number;
  readonly pagination: { readonly total: number; readonly has_more: boolean };
}

const WIDE_FILES = 50_000;

/** A commit of many files, for git fast-import. */
function wideHistory(): string {
  const file = (_: unknown, number: number) =>
    `M 100644 inline packages/part-${number % 500}/src/module-${number}.ts\ndata 2\nx\n\n`;
  const files = Array.from({ length: WIDE_FILES }, file).join('');
  return `commit refs/heads/main\ncommitter C <c@example.org> 1700000000 +0000\ndata 1\nx\n${files}\n`;
}

describe('A search over REST', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let work: string;

  const get = (rest: string, repository = 'code'): Promise<ApiAnswer> =>
    api(strata, ada.token, 'GET', `/v1/repos/ada/${repository}/${rest}`);
  const body = async <Body>(rest: string, repository?: string): Promise<Body> => {
    const answer = await get(rest, repository);
    assert.equal(answer.status, 200, answer.text);
    return answer.body as Body;
  };

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'code');
    await commitFile(work, 'src/gear.c', 'int teeth = 12;\r\nint turns;\n\n// teeth\nint last;\n');
    await commitFile(work, 'src/-e', 'no teeth\n');
    await commitFile(work, 'picture', 'teeth\0teeth\n');
    await commitFile(work, 'docs/read me.md', `${'x'.repeat(2_000)} teeth ${'y'.repeat(2_000)}\n`);
    await git(work, ['push', '--quiet', url, 'main']);
  });

  test('finds the lines that git grep finds, with those around them', async () => {
    const found = await body<Search>('search?q=teeth');
    const grep = await git(work, ['grep', '-n', '-I', '-F', '-e', 'teeth', 'main']);
    const expected = grep
      .trimEnd()
      .split('\n')
      .map((line) => /^main:(.*?):(\d+):/.exec(line)?.slice(1, 3));
    assert.deepEqual(
      found.matches.map(({ path, line }) => [path, String(line)]),
      expected,
    );
    const files = (await git(work, ['ls-tree', '-r', '--name-only', 'main'])).trimEnd().split('\n');
    assert.deepEqual([found.complete, found.searched_files, found.pagination.total], [true, files.length, 4]);
    const gear = found.matches.filter(({ path }) => path === 'src/gear.c');
    assert.deepEqual(gear, [
      { path: 'src/gear.c', line: 1, text: 'int teeth = 12;', before: [], after: ['int turns;', ''] },
      { path: 'src/gear.c', line: 4, text: '// teeth', before: ['int turns;', ''], after: ['int last;'] },
    ]);
    const long = found.matches.find(({ path }) => path === 'docs/read me.md')?.text ?? '';
    assert.match(long, /^…x+ teeth y+…$/);
  });

  test('takes expressions of PCRE, a literal path and a ref', async () => {
    const lines = async (query: string) =>
      (await body<Search>(`search?${query}`)).matches.map(({ path, line }) => `${path}:${line}`);
    assert.deepEqual(await lines('q=%5Eint%20%5Cw%2B%3B%24&regex=true&path=src'), ['src/gear.c:2', 'src/gear.c:5']);
    assert.deepEqual(await lines('q=teeth&path=src%2F-e'), ['src/-e:1']);
    assert.deepEqual(await lines('q=teeth&path=docs%2Fread+me.md'), ['docs/read me.md:1']);
    const tip = (await git(work, ['rev-parse', 'main~3'])).trim();
    assert.deepEqual(await lines(`q=teeth&ref=${tip}`), ['src/gear.c:1', 'src/gear.c:4']);
    const wrong = await get('search?q=(&regex=true');
    assert.deepEqual([wrong.status, /missing closing parenthesis/.test(wrong.text)], [422, true]);
  });

  test('does not find what no ref reaches, also by its id', async () => {
    const url = await createRepository(strata, ada, 'gone');
    const own = await newWorkTree(ending);
    await commitFile(own, 'kept', 'kept\n');
    await git(own, ['push', '--quiet', url, 'main']);
    const secret = await commitFile(own, 'secret', 'a secret\n');
    await git(own, ['push', '--quiet', url, 'main:refs/heads/wrong']);
    assert.equal((await body<Search>('search?q=secret&ref=wrong', 'gone')).matches.length, 1);
    await git(own, ['push', '--quiet', url, ':refs/heads/wrong']);
    for (const route of ['search?q=secret', 'files?q=secret', 'commits?text=secret']) {
      assert.equal((await get(`${route}&ref=${secret}`, 'gone')).status, 404, route);
      assert.equal((await get(`${route}&ref=wrong`, 'gone')).status, 404, route);
    }
  });

  test(`finds files among ${WIDE_FILES}, on pages that hold each of them once`, async () => {
    const url = await createRepository(strata, ada, 'wide');
    const own = await newWorkTree(ending);
    await git(own, ['fast-import', '--quiet', '--force'], wideHistory());
    await git(own, ['push', '--quiet', url, 'main']);
    const found: string[] = [];
    interface Found {
      readonly paths: readonly string[];
      readonly pagination: { readonly total: number; readonly has_more: boolean };
    }
    for (let page = 0, more = true; more; page += 1) {
      const { paths, pagination } = await body<Found>(`files?q=module-77&limit=100&page=${page}`, 'wide');
      found.push(...paths);
      more = pagination.has_more;
    }
    const all = (await git(own, ['ls-tree', '-r', '--name-only', 'main'])).trimEnd().split('\n');
    assert.deepEqual(found.toSorted(), all.filter((name) => name.includes('module-77')).toSorted());
    assert.equal(found[0], 'packages/part-77/src/module-77.ts');
    assert.equal((await body<Found>('files', 'wide')).pagination.total, WIDE_FILES);
  });

  test('finds commits by author, text and time, as git log does', async () => {
    const shas = async (query: string) =>
      (await body<{ commits: readonly { hexsha: string }[] }>(`commits?${query}`)).commits.map(({ hexsha }) => hexsha);
    const lines = async (...args: readonly string[]) =>
      (await git(work, ['log', ...args])).split('\n').filter((line) => line !== '');
    const log = (...args: readonly string[]) => lines('--format=%H', ...args);
    const dates = (format: string) => lines(`--format=${format}`, 'main');
    assert.deepEqual(await shas('text=src%2F'), await log('-F', '--grep=src/', 'main'));
    assert.deepEqual(await shas('text=WRITE&path=src'), await log('-i', '--grep=write', 'main', '--', 'src'));
    assert.deepEqual(await shas('author=nobody'), []);
    const all = await log('main');
    const [newest] = await dates('%cI');
    assert.deepEqual(await shas(`until=${encodeURIComponent(newest ?? '')}`), all);
    assert.deepEqual(await shas('until=2001-01-01T00:00:00Z'), []);
    assert.deepEqual(await shas('since=2001-01-01T00:00:00Z'), all);
    const longest = 'x'.repeat(COMMIT_SEARCH_LENGTH_MAX);
    for (const name of ['author', 'text']) {
      assert.deepEqual(await shas(`${name}=${longest}`), []);
      assert.equal((await get(`commits?${name}=${longest}x`)).status, 422);
    }
  });
});
