/** Files by a part of their path, and searches in them, over REST: their forms and what they refuse. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { REQUEST_POINTS } from '../../../core/kernel/limits.ts';
import { COMMIT_SEARCH_LENGTH_MAX } from '../../../core/use-cases/reading/list-commits.ts';
import { SEARCH_TEXT_LENGTH_MAX } from '../../../core/use-cases/reading/search-code.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { withoutChanges } from '../../support/no-history.ts';

describe('Over REST', () => {
  let fixture: ApiFixture;
  let token: TestToken;

  beforeAll(async () => {
    fixture = await createApiFixture({ objects: ({ database }) => withoutChanges(database) });
    const ada = await fixture.account('ada');
    token = await fixture.token(ada, { grants: ['API_COMMITS_READ'] });
    const { objects } = fixture;
    const blob = ['100644', objects.blob('text')] as const;
    const latin1 = { name: Buffer.from('caf\xe9', 'latin1'), mode: '100644', id: blob[1] };
    const folder = objects.tree({ 'main.c': blob, 'main.h': blob, link: ['120000', blob[1]] });
    const tree = objects.tree({ src: ['040000', folder], lib: ['040000', objects.rawTree([latin1])], README: blob });
    const long = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [String(n).padEnd(60_000, 'x'), blob]));
    const repository = await fixture.repository(ada, 'files', 'main');
    const tag = objects.tag(objects.blob('text'), 'blob');
    await fixture.push(repository, {
      'refs/heads/main': objects.commit({ tree, seconds: 1 }),
      'refs/heads/other': objects.commit({ tree: folder, seconds: 2 }),
      'refs/heads/long': objects.commit({ tree: objects.tree(long), seconds: 3 }),
      'refs/tags/blob': tag,
    });
    await fixture.repository(ada, 'empty', 'main');
  });
  afterAll(() => fixture.close());

  const get = (path: string, repository = 'files') =>
    fixture.request('GET', `/v1/repos/ada/${repository}/${path}`, token);
  const pointsOf = async (path: string): Promise<number> => {
    const left = async (target: string) => Number((await get(target)).headers['x-ratelimit-remaining']);
    const before = await left('branches');
    await get(path);
    return before - (await left('branches')) - REQUEST_POINTS.read;
  };

  test('files are found by a part of their path, in pages that hold each of them once', async () => {
    const answer = await get('files?q=MAIN');
    assert.equal(answer.statusCode, 200, answer.body);
    assert.deepEqual(answer.json(), {
      paths: ['src/main.c', 'src/main.h'],
      pagination: { page: 0, limit: 50, total: 2, has_more: false },
    });
    const found: string[] = [];
    for (let page = 0, more = true; more; page += 1) {
      const { paths, pagination } = (await get(`files?limit=2&page=${page}`)).json();
      found.push(...paths);
      more = pagination.has_more;
    }
    assert.deepEqual(found, ['README', 'lib/caf\ufffd', 'src/link', 'src/main.c', 'src/main.h']);
    assert.deepEqual((await get('files?ref=other&q=')).json().paths, ['link', 'main.c', 'main.h']);
    assert.deepEqual((await get('files?q=nothing')).json().paths, []);
    assert.equal(fixture.objects.openReaders(), 0);
  });

  test('paths that are not UTF-8 are told with their bytes', async () => {
    const { paths, paths_encoded } = (await get('files?q=caf')).json();
    assert.deepEqual([paths, paths_encoded], [['lib/caf\ufffd'], ['lib/caf%E9']]);
    assert.equal((await get(`contents/${paths_encoded[0]}`)).statusCode, 200);
  });

  test('paths that are too long for one page together are refused, and shown on smaller ones', async () => {
    const answer = await get('files?ref=long');
    assert.deepEqual([answer.statusCode, /ask for fewer items with limit/.test(answer.body)], [422, true]);
    assert.equal((await get('files?ref=long&limit=30')).json().paths.length, 30);
  });

  test('files of what has none are refused as elsewhere', async () => {
    for (const [path, repository, status] of [
      ['files', 'empty', 404],
      ['search?q=x', 'empty', 404],
      ['files?ref=none', 'files', 404],
      ['search?q=x&ref=none', 'files', 404],
      ['files?ref=blob', 'files', 422],
      ['search?q=x&path=none', 'files', 404],
      ['search?q=x&path=src/../src', 'files', 404],
      ['search?q=x&path=src*', 'files', 404],
      ['files?text=x', 'files', 422],
      ['files?q=a&q=b', 'files', 422],
    ] as const) {
      assert.equal((await get(path, repository)).statusCode, status, path);
    }
  });

  test('a search that finds nothing says how many files it searched', async () => {
    for (const [query, files] of [
      ['', 4],
      ['&path=src', 2],
      ['&path=README', 1],
      ['&path=src/link', 0],
      ['&ref=other', 2],
    ] as const) {
      const answer = await get(`search?q=nothing${query}`);
      assert.equal(answer.statusCode, 200, answer.body);
      assert.deepEqual(answer.json(), {
        ...{ matches: [], complete: true, searched_files: files },
        pagination: { page: 0, limit: 50, total: 0, has_more: false },
      });
    }
    assert.equal(fixture.objects.openReaders(), 0);
  });

  test(`a search takes a text of ${SEARCH_TEXT_LENGTH_MAX} characters, and none that is longer, empty, missing or with NUL`, async () => {
    const status = async (query: string) => (await get(`search${query}`)).statusCode;
    const longest = 'x'.repeat(SEARCH_TEXT_LENGTH_MAX);
    assert.deepEqual([await status(`?q=${longest}`), await status(`?q=${longest}x`)], [200, 422]);
    for (const query of ['', '?q=', '?q=a%00b', '?q=%00', '?q=a&regex=yes', '?q=a&q=b', '?text=a']) {
      assert.equal(await status(query), 422, query);
    }
    // Each is a text like any other.
    for (const text of ['--all', '-e', '%25', 'a%0Ab', '%20', '$(x)', '%F0%9F%98%80']) {
      assert.equal(await status(`?q=${text}`), 200, text);
    }
  });

  test('commits are searched for by texts of bounded length', async () => {
    for (const name of ['author', 'text']) {
      const longest = 'x'.repeat(COMMIT_SEARCH_LENGTH_MAX);
      assert.equal((await get(`commits?${name}=${longest}x`)).statusCode, 422, name);
    }
    assert.equal((await get('commits?since=yesterday')).statusCode, 422);
    assert.equal((await get('commits?author=&text=')).statusCode, 200, 'an empty text finds all');
  });

  test('finding files costs what a read does, and searching in them or for commits what other costly requests do', async () => {
    const { read, costly } = REQUEST_POINTS;
    for (const [path, points] of [
      ['files?q=main', read],
      ['commits?path=README', read],
      ['search?q=main', costly],
      ['commits?text=main', costly],
      ['commits?path=README&since=2026-01-01T00:00:00Z', costly],
    ] as const) {
      assert.equal(await pointsOf(path), points, path);
    }
  });

  test('an unchanged answer is 304', async () => {
    for (const path of ['files?q=main', 'search?q=nothing']) {
      const { etag } = (await get(path)).headers;
      const again = await fixture.request('GET', `/v1/repos/ada/files/${path}`, token, {
        headers: { 'if-none-match': String(etag) },
      });
      assert.equal(again.statusCode, 304, path);
    }
  });
});
