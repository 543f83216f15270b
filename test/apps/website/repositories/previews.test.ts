/** Previews of the text in a form, on a real server: what they show, and that they leave nothing behind. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, type TestContext, test } from 'vitest';
import { EDITED_TEXT_BYTES_MAX } from '../../../../apps/website/repositories/editable-text.ts';
import { PAGE_WHOLE_BYTES_MAX } from '../../../../apps/website/repositories/limits.ts';
import { suiteEnding } from '../../../support/cleanup.ts';
import type { SiteBrowser, SitePage } from '../../../support/form-browser.ts';
import { decodedText, mainForm, visibleText } from '../../../support/main-form.ts';
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

/** What a page has around the text that it shows. */
const FRAME_BYTES_MAX = 16 * 1_024;

describe('A preview', () => {
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
    const form = async (address: string): Promise<Record<string, string>> =>
      mainForm(await browser.get(`${home}/${address}`));
    const send = (action: string, fields: Record<string, string>): Promise<SitePage> =>
      browser.submitParts(`${home}/${action}`, { fields }, `${home}/settings`);
    const preview = (show: string, fields: Record<string, string>): Promise<SitePage> =>
      send('preview', { ...fields, show });
    return { home, url, work, form, send, preview };
  }

  /** With these files on `main`. */
  async function pushed(context: TestContext, files: Readonly<Record<string, string>>) {
    const begun = await empty(context);
    const { work, url } = begun;
    const commit = async (changed: typeof files): Promise<void> => {
      for (const [file, text] of Object.entries(changed)) await writeFile(path.join(work, file), text);
      await git(work, ['add', '.']);
      await git(work, ['commit', '--quiet', '--message', 'A change']);
      await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/main']);
    };
    await commit(files);
    return { ...begun, commit };
  }

  /** The lines of a diff, each behind its sign. */
  function linesOf({ html }: SitePage): readonly string[] {
    const rows = html.matchAll(/<div(?: class=(added|removed))?>(?:<a id[^>]*>\d+<\/a>)+([^<]*)<\/div>/g);
    return [...rows].map(([, kind, text = '']) => {
      return `${kind === 'added' ? '+' : kind === 'removed' ? '-' : ' '}${decodedText(text)}`;
    });
  }

  function articleOf({ html }: SitePage): string {
    const [article = ''] = /<article class="prose">[^]*?<\/article>/.exec(html) ?? [];
    return article;
  }

  test('of Markdown is what the page of the file shows once it is saved', async (context) => {
    const { home, form, send, preview } = await pushed(context, { 'README.md': '# Old\n', other: 'o\n' });
    const text = '# New\n\n[more](other) <script>alert(1)</script>\n\n* [x] done\n';
    const fields = { ...(await form('edit/main/README.md')), text };
    const page = await preview('markdown', fields);
    assert.equal(page.status, 200);
    const article = articleOf(page);
    assert.match(article, /<h3 id="new">New<\/h3>/);
    assert.ok(article.includes(`href="${home}/blob/main/other"`), article);
    assert.doesNotMatch(page.html, /<script>/);
    assert.equal((await send('edit', fields)).status, 303);
    assert.equal(articleOf(await browser.get(`${home}/blob/main/README.md`)), article);
    assert.match(visibleText(await preview('markdown', { ...fields, text: '' })), /This file is empty/);
  });

  test('of changes shows them against what its writer saw, whatever came since', async (context) => {
    const { form, preview, commit } = await pushed(context, { file: 'one\ntwo <b>\nthree\n' });
    const fields = await form('edit/main/file');
    await commit({ file: 'theirs\n' });
    const page = await preview('diff', { ...fields, text: 'one\r\n2 <i>\r\nthree\r\n' });
    assert.equal(page.status, 200);
    assert.deepEqual(linesOf(page), [' one', '-two <b>', '+2 <i>', ' three']);
    assert.match(visibleText(page), /\+1 −1/);
    const same = await preview('diff', fields);
    assert.equal(same.status, 200);
    assert.match(visibleText(same), /Nothing is changed/);
    await commit({ file: 'one\r\ntwo\r\n' });
    const ofCrlf = await preview('diff', { ...(await form('edit/main/file')), text: 'one\r\n2\r\n' });
    assert.deepEqual(linesOf(ofCrlf), [' one', '-two', '+2']);
  });

  test('of a file that is created shows all of it, also as the first of a repository', async (context) => {
    const { form, preview } = await pushed(context, { file: 'a\n' });
    const fields = await form('create/main');
    const page = await preview('diff', { ...fields, path: 'src/new.c', text: 'a\nb\n' });
    assert.equal(page.status, 200);
    assert.deepEqual(linesOf(page), ['+a', '+b']);
    for (const [typed, status, words] of [
      ['', 422, /Name the file\./],
      ['file', 409, /Something else is at the path than was expected\./],
      ['file/below', 422, /A file or a submodule is where/],
      ['.git/config', 422, /No path has this name/],
    ] as const) {
      const refused = await preview('diff', { ...fields, path: typed, text: 'a\n' });
      assert.equal(refused.status, status, typed);
      assert.match(visibleText(refused), words, typed);
    }
    const first = await empty(context);
    const begun = { ...(await first.form('create')), path: 'README.md', text: '# First\n' };
    assert.deepEqual(linesOf(await first.preview('diff', begun)), ['+# First']);
    assert.match(articleOf(await first.preview('markdown', begun)), />First</);
    // A branch that no form begins.
    const refused = await first.preview('diff', { ...begun, branch: 'a..b' });
    assert.equal(refused.status, 422);
    assert.match(visibleText(refused), /a\.\.b: /);
  });

  test('moves no ref, records nothing, and needs no message', async (context) => {
    const { home, url, work, form, preview } = await pushed(context, { 'a.md': 'a\n' });
    const state = async (): Promise<readonly string[]> => {
      const activity = await browser.get(`${home}/activity`);
      const events = [...activity.html.matchAll(/history\/([0-9a-f-]{36})/g)].map(([, id = '']) => id);
      return [await git(work, ['ls-remote', url]), ...events];
    };
    const before = await state();
    assert.ok(before.length > 1);
    const fields = { ...(await form('edit/main/a.md')), text: 'b\n', message: '', where: 'new', new_branch: '' };
    for (const show of ['diff', 'markdown']) assert.equal((await preview(show, fields)).status, 200, show);
    assert.deepEqual(await state(), before);
  });

  test('shows a bounded part of a long text, and none of one that cannot be saved', async (context) => {
    const { form, preview } = await pushed(context, { 'a.md': 'a\n' });
    const fields = await form('edit/main/a.md');
    for (const [show, line, words] of [
      ['markdown', '# Line <b>\n', /Only the start is shown/],
      ['diff', `${'y'.repeat(511)}\n`, /More lines changed than are shown/],
    ] as const) {
      const text = line.repeat(EDITED_TEXT_BYTES_MAX / line.length / 2);
      const page = await preview(show, { ...fields, text });
      assert.equal(page.status, 200, show);
      assert.match(visibleText(page), words);
      assert.ok(page.bytes.length <= PAGE_WHOLE_BYTES_MAX + FRAME_BYTES_MAX, `${show} of ${page.bytes.length} bytes`);
      const over = await preview(show, { ...fields, text: 'y'.repeat(EDITED_TEXT_BYTES_MAX + 1) });
      assert.equal(over.status, 422, show);
      assert.match(visibleText(over), /A text has at most 1 MiB/);
    }
  });

  // The attack: a page of another site, and another account, ask what the text of a repository is.
  test('takes no form of another site, and shows nobody a repository of others', async (context) => {
    const { home, form, preview } = await pushed(context, { file: 'a secret\n' });
    const fields = { ...(await form('edit/main/file')), text: 'b\n', show: 'diff' };
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    for (const origin of ['https://evil.example', strata.url]) {
      const headers = { cookie, origin };
      const answer = await fetch(`${strata.url}${home}/preview`, { method: 'POST', redirect: 'manual', headers, body });
      assert.equal(answer.status, 403, `from ${origin} without a token`);
      assert.doesNotMatch(await answer.text(), /a secret/);
    }
    const eve = await signIn(strata, await createAccount(strata, `eve-${names}`));
    assert.equal((await eve.submitParts(`${home}/preview`, { fields }, '/settings')).status, 404);
    assert.equal((await preview('both', fields)).status, 404);
    for (const broken of [{ head: 'x' }, { blob: '' }, { path: '../x' }, { path: '' }, { branch: '' }]) {
      assert.equal((await preview('diff', { ...fields, ...broken })).status, 404, JSON.stringify(broken));
    }
    const gone = await preview('diff', { ...fields, head: 'f'.repeat(40) });
    assert.equal(gone.status, 422);
    assert.match(visibleText(gone), /No branch or tag has the commit any more/);
    const other = await preview('diff', { ...fields, blob: 'f'.repeat(40) });
    assert.equal(other.status, 409);
  });
});
