/** Files whose names are not UTF-8, or hold what addresses escape: each is read by what the API says of it. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  api,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

/** Paths as bytes, one code unit a byte. */
const PATHS = [
  'latin1-\xfc.txt',
  'dir-\xe9/in \xfcber+100%.txt',
  'dir-\xe9/plain',
  'plain/\xff\xfe',
  'plain/utf8-\xc3\xbc',
  'plain/a+b c%20d&e#f?.txt',
  // A name of U+FFFD itself.
  'plain/\xef\xbf\xbd',
];
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
/** Percent-encodes the bytes as a client does that was told nothing. */
const escaped = (path: string): string =>
  path.replaceAll(/[^A-Za-z0-9/]/g, (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);

describe('A path that is not UTF-8', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let work: string;

  const get = async (target: string) => {
    const { status, text, headers } = await api(strata, ada.token, 'GET', `/v1/repos/ada/odd/${target}`);
    const isJson = headers.get('content-type')?.includes('json') === true;
    return { status, text, body: isJson ? JSON.parse(text) : undefined };
  };
  /** By what a path's members say of it. */
  const wordOf = ({ path, path_encoded }: { path: string; path_encoded?: string }): string =>
    path_encoded ?? path.split('/').map(encodeURIComponent).join('/');

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'odd');
    const commit = (seconds: number, changes: readonly Buffer[]): Buffer =>
      Buffer.concat([
        latin1(`commit refs/heads/odd\ncommitter C <c@example.org> ${seconds} +0000\ndata 1\nx\n`),
        ...changes,
        latin1('\n'),
      ]);
    const quoted = (path: string): string => `"${path.replaceAll(/["\\]/g, '\\$&')}"`;
    const made = PATHS.map((path, at) => {
      const content = latin1(`content of ${path}`);
      return commit(1_700_000_000 + at, [latin1(`M 100644 inline ${quoted(path)}\ndata ${content.length}\n`), content]);
    });
    const moved = commit(1_700_001_000, [latin1(`R ${quoted('latin1-\xfc.txt')} ${quoted('latin1-\xdc.txt')}\n`)]);
    await git(work, ['fast-import', '--quiet'], Buffer.concat([...made, moved]));
    await git(work, ['push', '--quiet', url, 'odd:main']);
  });

  test('is read, and its history listed, by the bytes that the API says, and by any escapes of them', async () => {
    const files: { path: string; path_encoded?: string; type: string }[] = [];
    const folders = [''];
    for (const folder of folders) {
      const { body } = await get(`contents/${folder}`);
      for (const entry of body.entries) {
        if (entry.type === 'dir') folders.push(wordOf(entry));
        else files.push(entry);
      }
    }
    const tree = await git(work, ['ls-tree', '-r', '-z', '--name-only', 'odd']);
    assert.deepEqual(files.map(({ path }) => path).toSorted(), tree.split('\0').slice(0, -1).toSorted());
    for (const file of files) {
      const { path } = file;
      assert.equal(file.path_encoded !== undefined, /dir-|latin1-|plain\/\ufffd\ufffd/.test(path), path);
      const own = (await get(`contents/${wordOf(file)}`)).body;
      assert.deepEqual([own.path, own.path_encoded], [path, file.path_encoded]);
      const commits = await get(`commits?path=${wordOf(file)}&limit=1`);
      assert.equal(commits.status, 200, path);
      assert.equal(commits.body.commits.length, 1, path);
    }
    for (const path of PATHS) {
      const answer = await get(`commits?path=${escaped(path)}`);
      const bytes = latin1(path).toString('utf8');
      assert.equal(answer.status, 200, bytes);
      // The first was renamed later.
      assert.equal(answer.body.commits.length, path === PATHS[0] ? 2 : 1, bytes);
    }
  });

  test('of a folder lists its history, and a text of replacement characters names no other file', async () => {
    const { body } = await get('commits?path=dir-%E9');
    assert.equal(body.commits.length, 2);
    assert.equal((await get('commits?path=dir-%EF%BF%BD')).status, 404);
    assert.equal((await get('commits?path=plain/a%2Bb+c%2520d%26e%23f%3F.txt')).status, 200);
    assert.equal((await get('commits?path=no%such')).status, 404);
  });

  test('stands in the files of a commit, before and after a rename', async () => {
    const tip = (await git(work, ['rev-parse', 'odd'])).trim();
    const { files } = (await get(`commits/${tip}`)).body;
    assert.partialDeepStrictEqual(files, [
      {
        path: 'latin1-\ufffd.txt',
        path_encoded: 'latin1-%DC.txt',
        previous_path: 'latin1-\ufffd.txt',
        previous_path_encoded: 'latin1-%FC.txt',
        status: 'renamed',
      },
    ]);
    const plain = (await get(`commits/${(await git(work, ['rev-parse', 'odd~3'])).trim()}`)).body.files;
    assert.deepEqual(Object.keys(plain[0]).includes('path_encoded'), false);
  });
});
