/** Tags of folders and files, which git allows: what git says of them, and what REST, archives and pages say. */
import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import type { SiteBrowser } from '../support/form-browser.ts';
import { signIn } from '../support/site-browser.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

/** What each tag leads to, as git names it, and whether it is annotated. */
const TAGS = [
  { name: 'a-blob', object: 'HEAD:folder/file', annotated: true },
  { name: 'a-tree', object: 'HEAD:folder', annotated: true },
  { name: 'commit', object: 'HEAD', annotated: true },
  { name: 'light-blob', object: 'HEAD:folder/file', annotated: false },
  { name: 'light-tree', object: 'HEAD^{tree}', annotated: false },
];

describe('A tag of a folder or a file', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;
  let work: string;

  const get = async (target: string) => {
    const { status, text, headers } = await api(strata, ada.token, 'GET', `/v1/repos/ada/odd/${target}`);
    const isJson = headers.get('content-type')?.includes('json') === true;
    return { status, text, headers, body: isJson ? JSON.parse(text) : undefined };
  };
  const said = async (...args: string[]): Promise<string> => (await git(work, args)).trim();

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    browser = await signIn(strata, ada);
    work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'odd');
    await commitFile(work, 'folder/file', 'bytes\n');
    await commitFile(work, 'top', 'more\n');
    for (const { name, object, annotated } of TAGS) {
      await git(work, ['tag', ...(annotated ? ['-a', '-m', `About ${name}`] : []), name, object]);
    }
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/main', '--tags']);
  });

  test('is listed with the type of what it leads to in the end', async () => {
    const { body } = await get('tags');
    const listed = body.tags.map(({ name, target, type, commit }: Record<string, unknown>) => [
      name,
      target,
      type,
      commit === null,
    ]);
    const expected: unknown[] = [];
    for (const { name } of TAGS) {
      const target = await said('rev-parse', `${name}^{}`);
      const type = await said('cat-file', '-t', target);
      expected.push([name, target, type, type !== 'commit']);
    }
    assert.deepEqual(listed, expected);
  });

  test('has contents: the folder, or the file with an empty path', async () => {
    const tree = (await get('contents?ref=a-tree')).body;
    assert.deepEqual([tree.type, tree.path, tree.ref, tree.commit], ['dir', '', 'a-tree', null]);
    assert.deepEqual(
      tree.entries.map(({ path, sha }: Record<string, unknown>) => [path, sha]),
      [['file', await said('rev-parse', 'a-tree:file')]],
    );
    assert.equal((await get('contents/file?ref=a-tree&raw=true')).text, await git(work, ['show', 'a-tree:file']));
    assert.equal((await get('contents/folder/file?ref=light-tree')).body.content, 'bytes\n');
    for (const name of ['a-blob', 'light-blob']) {
      const { type, path, sha, mode, content, commit } = (await get(`contents?ref=${name}`)).body;
      const id = await said('rev-parse', `${name}^{}`);
      assert.deepEqual([type, path, sha, mode, content, commit], ['file', '', id, '100644', 'bytes\n', null]);
      const raw = await get(`contents?ref=${name}&raw=true`);
      assert.deepEqual([raw.status, raw.text], [200, await git(work, ['cat-file', 'blob', name])]);
      assert.equal(raw.headers.get('content-disposition'), `attachment; filename="${name}"`);
      assert.equal((await browser.get(`/ada/odd/raw/refs/tags/${name}`)).html, 'bytes\n');
      assert.equal((await get(`contents/file?ref=${name}`)).status, 404);
    }
  });

  test('of a folder has an archive of it, and of a file is refused as no tree', async () => {
    const answer = await fetch(`${strata.url}/v1/repos/ada/odd/archive/a-tree.tar.gz`, {
      headers: { authorization: `Bearer ${ada.token}` },
    });
    assert.equal(answer.status, 200);
    const tar = gunzipSync(Buffer.from(await answer.arrayBuffer())).toString('latin1');
    assert.ok(tar.includes('odd-a-tree/file\0') && tar.includes('bytes\n'));
    const refused = await get('archive/a-blob.tar.gz');
    assert.deepEqual([refused.status, refused.body.detail], [422, 'The ref leads to a blob: not a tree']);
  });

  test('has no commits, and the refusal names the type', async () => {
    for (const [name, type] of [
      ['a-tree', 'tree'],
      ['light-blob', 'blob'],
    ]) {
      for (const target of [`commits?ref=${name}`, `commits?ref=${name}&path=file`]) {
        const { status, body } = await get(target);
        assert.deepEqual([status, body.detail], [422, `The ref leads to a ${type}, not to a commit`], target);
      }
    }
  });

  test('has pages that work, and every link of the page of tags leads to one', async () => {
    const tags = await browser.get('/ada/odd/tags');
    const links = [...tags.html.matchAll(/href="(\/ada\/odd\/[^"#]*)"/g)].map(([, link = '']) => link);
    assert.ok(links.some((link) => link.includes('a-tree')) && links.some((link) => link.includes('a-blob')));
    for (const link of new Set(links)) assert.ok((await browser.get(link)).status < 400, link);
    for (const [place, text] of [
      ['tree/refs/tags/a-tree', 'file'],
      ['blob/refs/tags/a-tree/file', 'bytes'],
      ['blob/refs/tags/a-blob', 'bytes'],
    ] as const) {
      const page = await browser.get(`/ada/odd/${place}`);
      assert.equal(page.status, 200, place);
      assert.ok(page.html.includes(text), place);
      assert.ok(!/href="[^"]*\/commits\/refs/.test(page.html), place);
    }
    // The picker of the commits names these tags too.
    const picked = await browser.get('/ada/odd/commits/refs/tags/a-tree');
    assert.deepEqual([picked.status, picked.location], [303, '/ada/odd/tree/refs/tags/a-tree']);
    assert.equal((await browser.get('/ada/odd/commits/refs/tags/a-tree/file')).status, 422);
  });
});
