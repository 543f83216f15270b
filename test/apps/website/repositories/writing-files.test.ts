/** Files that people create, upload, move and delete on the website, as the real git sees them. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, type TestContext, test } from 'vitest';
import { UPLOAD_FORM_BYTES_MAX } from '../../../../apps/website/repositories/limits.ts';
import { suiteEnding } from '../../../support/cleanup.ts';
import type { SentInParts, SiteBrowser, SitePage } from '../../../support/form-browser.ts';
import { mainForm, visibleText } from '../../../support/main-form.ts';
import { signIn } from '../../../support/site-browser.ts';
import {
  type Account,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../../../support/strata.ts';
import { sharedParts, startNode } from '../../../support/strata-on-postgres.ts';

describe('Writing files', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;
  let names = 0;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    browser = await signIn(strata, ada);
  });

  async function empty(context: TestContext) {
    const name = `repository-${++names}`;
    const url = await createRepository(strata, ada, name);
    const work = await newWorkTree(context);
    const home = `/ada/${name}`;
    const send = (action: string, fields: SentInParts['fields'], files: SentInParts['files'] = []): Promise<SitePage> =>
      browser.submitParts(`${home}/${action}`, { fields, files }, `${home}/settings`);
    const form = async (address: string): Promise<Record<string, string>> => {
      const page = await browser.get(`${home}/${address}`);
      assert.equal(page.status, 200, address);
      return mainForm(page);
    };
    const listed = async (ref = 'main'): Promise<readonly string[]> => {
      await git(work, ['fetch', '--quiet', url, ref]);
      const lines = (await git(work, ['ls-tree', '-r', '-z', 'FETCH_HEAD'])).split('\0');
      return lines.filter((line) => line !== '').map((line) => line.replace(/ blob [0-9a-f]{40}\t/, ' '));
    };
    const shown = (file: string): Promise<string> => git(work, ['show', `FETCH_HEAD:${file}`]);
    return { home, url, work, send, form, listed, shown };
  }

  /** With `README`, `src/main.c` and an executable `src/run` on `main`. */
  async function pushed(context: TestContext) {
    const begun = await empty(context);
    const { work, url } = begun;
    await mkdir(path.join(work, 'src'));
    await writeFile(path.join(work, 'README'), 'hello\n');
    await writeFile(path.join(work, 'src/main.c'), 'main\n');
    await writeFile(path.join(work, 'src/run'), 'run\n', { mode: 0o755 });
    const push = async (): Promise<void> => {
      await git(work, ['add', '--all']);
      await git(work, ['commit', '--quiet', '--message', 'A change']);
      await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/main']);
    };
    await push();
    return { ...begun, push };
  }

  test('creates the first file of an empty repository', async (context) => {
    const { home, send, form, listed, shown, work } = await empty(context);
    const page = await browser.get(home);
    assert.match(page.html, new RegExp(`href="${home}/create"[^]*href="${home}/upload"`));
    const fields = await form('create');
    assert.deepEqual([fields['head'], fields['where']], ['0'.repeat(40), undefined]);
    const made = await send('create', { ...fields, path: 'notes/first.md', text: '# First\r\n\r\nunended' });
    assert.match(made.location ?? '', new RegExp(`^${home}/blob/(main|master)/notes/first\\.md$`));
    assert.match(visibleText(await browser.follow(made)), /first\.md is created in commit [0-9a-f]{7}\. Undo/);
    assert.deepEqual(await listed('HEAD'), ['100644 notes/first.md']);
    assert.equal(await shown('notes/first.md'), '# First\n\nunended');
    const late = await send('create', { ...fields, path: 'second', text: '' });
    assert.equal(late.status, 409);
    assert.match(visibleText(late), /it exists already/);
    await git(work, ['fsck', '--strict']);
  });

  test('creates a file in any folder of a branch, and never over what is there', async (context) => {
    const { home, send, form, listed } = await pushed(context);
    assert.match((await browser.get(`${home}/tree/main/src`)).html, new RegExp(`href="${home}/create/main/src"`));
    const fields = await form('create/main/src');
    const created = await send('create', { ...fields, path: 'new/deep.c', text: 'deep\n' });
    assert.equal(created.location, `${home}/blob/main/src/new/deep.c`);
    assert.deepEqual(await listed(), ['100644 README', '100644 src/main.c', '100644 src/new/deep.c', '100755 src/run']);
    for (const [typed, status, words] of [
      ['main.c', 409, /Something is at this path already/],
      ['new', 409, /Something is at this path already/],
      ['main.c/below', 422, /A file or a submodule is where/],
      ['', 422, /Name the file/],
      ['a//b', 422, /A path is names with a slash between them/],
      ['/a', 422, /A path is names with a slash between them/],
      ['.git/config', 422, /No path has this name/],
      ['../up', 422, /No path has this name/],
      ['x'.repeat(4_097), 422, /The path is longer than it may be/],
    ] as const) {
      const refused = await send('create', { ...fields, path: typed, text: 'kept <b>' });
      assert.equal(refused.status, status, typed);
      assert.match(visibleText(refused), words, typed);
      assert.match(refused.html, /<a href="#path">/, typed);
      assert.equal(mainForm(refused)['text'], 'kept <b>', typed);
    }
    assert.equal((await browser.get(`${home}/create/nowhere`)).status, 404);
    assert.equal((await browser.get(`${home}/create/${fields['head']}`)).status, 404);
  });

  test('uploads files with their bytes and names, and replaces only what it was told to', async (context) => {
    const { home, send, form, listed, work, url } = await pushed(context);
    const fields = await form('upload/main/src');
    const bytes = Uint8Array.from({ length: 70_000 }, (_, at) => at % 253);
    const files = [
      { field: 'files', name: 'Grüße "quoted".bin', bytes },
      { field: 'files', name: 'empty', bytes: new Uint8Array() },
    ];
    const uploaded = await send('upload', fields, files);
    assert.equal(uploaded.location, `${home}/tree/main/src`);
    assert.match(visibleText(await browser.follow(uploaded)), /2 files uploaded in commit/);
    assert.deepEqual((await listed()).slice(1), [
      '100644 src/Grüße "quoted".bin',
      '100644 src/empty',
      '100644 src/main.c',
      '100755 src/run',
    ]);
    const id = (await git(work, ['hash-object', '--stdin'], bytes)).trim();
    assert.equal((await git(work, ['rev-parse', 'FETCH_HEAD:src/Grüße "quoted".bin'])).trim(), id);
    const own = [{ field: 'files', name: 'run', bytes: Buffer.from('new\n') }];
    const there = await send('upload', await form('upload/main/src'), own);
    assert.equal(there.status, 409);
    assert.match(visibleText(there), /run is there already\. Nothing was saved: choose the files again/);
    assert.equal((await send('upload', { ...mainForm(there), replace: 'yes' }, own)).status, 303);
    await git(work, ['fetch', '--quiet', url, 'main']);
    assert.equal(await git(work, ['show', 'FETCH_HEAD:src/run']), 'new\n');
    assert.ok((await listed()).includes('100755 src/run'), 'its mode stays');
    const none = await send('upload', fields, [{ field: 'files', name: '', bytes: new Uint8Array() }]);
    assert.match(none.html, /<a href="#files">Choose a file\./);
    const forbidden = await send('upload', fields, [{ field: 'files', name: '.git', bytes: new Uint8Array() }]);
    assert.equal(forbidden.status, 422);
    assert.match(forbidden.html, /<a href="#files">src\/\.git: No path has this name/);
    const twice = await send(
      'upload',
      fields,
      [0, 1].map(() => ({ field: 'files', name: 'twice', bytes })),
    );
    assert.match(visibleText(twice), /Another change has this path/);
  });

  test('uploads as much as the limit says, and not a byte more', async (context) => {
    const { home, send, form } = await pushed(context);
    const fields = await form('upload/main');
    const counted = new FormData();
    const page = await browser.get(`${home}/settings`);
    const [, token = ''] = /name="_csrf" value="([^"]+)"/.exec(page.html) ?? [];
    for (const [name, value] of Object.entries({ _csrf: token, ...fields })) counted.append(name, value);
    counted.append('files', new Blob([]), 'large');
    const rest = (await new Response(counted).arrayBuffer()).byteLength;
    const sized = (bytes: number) => [{ field: 'files', name: 'large', bytes: new Uint8Array(bytes - rest) }];
    // The boundary of each body has its own length.
    assert.equal((await send('upload', fields, sized(UPLOAD_FORM_BYTES_MAX - 100))).status, 303);
    assert.equal((await send('upload', fields, sized(UPLOAD_FORM_BYTES_MAX + 100))).status, 413);
  });

  test('moves a file with its mode, and a folder, and never onto something', async (context) => {
    const { home, send, form, listed } = await pushed(context);
    const page = await browser.get(`${home}/blob/main/src/run`);
    assert.match(page.html, new RegExp(`href="${home}/move/main/src/run">Move<`));
    const fields = await form('move/main/src/run');
    assert.deepEqual([fields['to'], fields['message']], ['src/run', 'Move run']);
    const moved = await send('move', { ...fields, to: 'bin/tools/run' });
    assert.equal(moved.location, `${home}/blob/main/bin/tools/run`);
    assert.match(visibleText(await browser.follow(moved)), /run is moved in commit/);
    assert.deepEqual(await listed(), ['100644 README', '100755 bin/tools/run', '100644 src/main.c']);
    const folder = await send('move', { ...(await form('move/main/bin')), to: 'src/bin' });
    assert.equal(folder.location, `${home}/tree/main/src/bin`);
    assert.deepEqual(await listed(), ['100644 README', '100755 src/bin/tools/run', '100644 src/main.c']);
    const onto = await send('move', { ...(await form('move/main/README')), to: 'src/main.c' });
    assert.equal(onto.status, 422);
    assert.match(onto.html, /<a href="#to">src\/main\.c: Something is at the path already/);
    assert.equal(mainForm(onto)['to'], 'src/main.c');
    assert.equal((await browser.get(`${home}/move/main`)).status, 404);
  });

  test('deletes a file and a folder, and shows the next folder above that there is', async (context) => {
    const { home, send, form, listed } = await pushed(context);
    const file = await send('remove', await form('remove/main/src/run'));
    assert.equal(file.location, `${home}/tree/main/src`);
    assert.match(visibleText(await browser.follow(file)), /run is deleted in commit [0-9a-f]{7}\. Undo/);
    assert.equal((await send('remove', await form('remove/main/src/main.c'))).location, `${home}/tree/main`);
    assert.deepEqual(await listed(), ['100644 README']);
    const last = await send('remove', await form('remove/main/README'));
    assert.equal(last.location, `${home}/tree/main`);
    assert.equal((await browser.follow(last)).status, 200);
    assert.deepEqual(await listed(), []);
    assert.equal((await browser.get(home)).status, 200);
  });

  // The story: the form of a branch is open while somebody deletes the branch.
  test('makes no branch again that was deleted since the page was opened', async (context) => {
    const { send, form, work, url } = await pushed(context);
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/topic']);
    const created = { ...(await form('create/topic')), path: 'new', text: 'kept\n' };
    const uploaded = await form('upload/topic');
    await git(work, ['push', '--quiet', url, ':refs/heads/topic']);
    const files = [{ field: 'files', name: 'new', bytes: Buffer.from('new\n') }];
    for (const [action, fields] of [
      ['create', created],
      ['upload', uploaded],
    ] as const) {
      const refused = await send(action, fields, files);
      assert.equal(refused.status, 409, action);
      assert.match(visibleText(refused), /The branch topic was deleted since this page was opened/, action);
    }
    assert.equal((await git(work, ['ls-remote', url, 'refs/heads/topic'])).trim(), '');
    assert.equal((await send('create', { ...created, where: 'new', new_branch: 'topic' })).status, 303);
  });

  // The story: a folder is deleted by somebody who has not seen what came into it.
  test('deletes and moves only what its writer saw', async (context) => {
    const { home, send, form, listed, push, work } = await pushed(context);
    const [remove, move] = [await form('remove/main/src'), await form('move/main/src/main.c')];
    await writeFile(path.join(work, 'src/main.c'), 'theirs\n');
    await push();
    for (const [action, fields] of [
      ['remove', remove],
      ['move', { ...move, to: 'there' }],
    ] as const) {
      const refused = await send(action, fields);
      assert.equal(refused.status, 409, action);
      assert.match(visibleText(refused), /Somebody changed it since this page was opened/, action);
    }
    assert.equal((await listed()).length, 3);
    const again = mainForm(await send('remove', remove));
    assert.equal((await send('remove', again)).status, 303);
    const gone = await send('move', { ...move, to: 'there' });
    assert.equal(gone.status, 409);
    assert.match(visibleText(gone), /It was deleted or moved since this page was opened/);
    assert.equal((await browser.get(`${home}/tree/main`)).status, 200);
  });
});
