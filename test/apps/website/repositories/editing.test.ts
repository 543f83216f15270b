/** Files that people edit on the website, as the real git sees them: on a real server, by a browser without scripts. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, type TestContext, test } from 'vitest';
import { EDITED_TEXT_BYTES_MAX } from '../../../../apps/website/repositories/editable-text.ts';
import { WRITING_FORM_BYTES_MAX } from '../../../../apps/website/repositories/limits.ts';
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

describe('Editing a file', () => {
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

  /** A repository with these files on `main`. */
  async function pushed(context: TestContext, files: Readonly<Record<string, string | Buffer>>) {
    const name = `repository-${++names}`;
    const url = await createRepository(strata, ada, name);
    const work = await newWorkTree(context);
    const commit = async (changed: typeof files): Promise<string> => {
      for (const [file, bytes] of Object.entries(changed)) await writeFile(path.join(work, file), bytes);
      await git(work, ['add', '.']);
      await git(work, ['commit', '--quiet', '--message', 'A change']);
      await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/main']);
      return (await git(work, ['rev-parse', 'HEAD'])).trim();
    };
    const head = await commit(files);
    const home = `/ada/${name}`;
    const fetched = async (ref: string, file: string): Promise<Buffer> => {
      await git(work, ['fetch', '--quiet', url, ref]);
      return Buffer.from(await git(work, ['show', `FETCH_HEAD:${file}`]), 'utf8');
    };
    const opened = async (file: string): Promise<Record<string, string>> =>
      mainForm(await browser.get(`${home}/edit/main/${file}`));
    const save = (fields: Record<string, string>): Promise<SitePage> =>
      browser.submitParts(`${home}/edit`, { fields }, `${home}/settings`);
    return { home, url, work, head, commit, fetched, opened, save };
  }

  test('begins with a link on its page and ends there, with a commit of the account and its undoing', async (context) => {
    const { home, work, fetched } = await pushed(context, { 'main.c': 'int main;\n' });
    const page = await browser.get(`${home}/blob/main/main.c`);
    assert.match(page.html, new RegExp(`<a href="${home}/edit/main/main.c">Edit</a>`));
    const edit = await browser.get(`${home}/edit/main/main.c`);
    assert.equal(edit.status, 200);
    const fields = mainForm(edit);
    assert.deepEqual([fields['text'], fields['message'], fields['where']], ['int main;\n', 'Update main.c', 'branch']);
    const sent = { ...fields, text: 'int main = 1;\n', message: 'Set main\n\nIt was not set.' };
    const saved = await browser.submitParts(`${home}/edit`, { fields: sent }, `${home}/edit/main/main.c`);
    assert.equal(saved.location, `${home}/blob/main/main.c`);
    const after = await browser.follow(saved);
    assert.match(visibleText(after), /main\.c is saved in commit [0-9a-f]{7}\. Undo/);
    assert.match(visibleText(after), /int main = 1 ;/);
    assert.equal(String(await fetched('main', 'main.c')), 'int main = 1;\n');
    const shown = await git(work, ['log', '-1', '--format=%an %ae|%cn|%B', 'FETCH_HEAD']);
    assert.equal(shown.trim(), 'ada ada@users.noreply.localhost|ada|Set main\n\nIt was not set.');
    assert.equal((await git(work, ['rev-list', '--count', 'FETCH_HEAD'])).trim(), '3');
    const [, undo = ''] = /<a href="([^"]*)">Undo<\/a>/.exec(after.html) ?? [];
    const plan = await browser.get(decodedText(undo));
    assert.match(visibleText(plan), /Only refs\/heads\/main is set back/);
    await browser.submit(`${home}/restore`, mainForm(plan), decodedText(undo));
    assert.equal(String(await fetched('main', 'main.c')), 'int main;\n');
  });

  test('keeps every byte that nobody edited', async (context) => {
    const files = {
      lf: 'one\ntwo\n',
      crlf: 'one\r\ntwo\r\n',
      unended: 'one\ntwo',
      'crlf-unended': 'one\r\ntwo',
      led: '\n\none\n',
      'crlf-led': '\r\none\r\n',
      mark: '\ufeffone\ntwo\n',
      line: 'one',
      odd: 'tab\tform\fescape\x1b &amp; <b> "quotes" \'and\' =\u00a0\u2028\u202e\ufffe 😀 `${x}`\n',
      blanks: '  \n\t\n ',
    };
    const { home, work, opened, save, fetched } = await pushed(context, files);
    for (const [name, text] of Object.entries(files)) {
      const fields = await opened(name);
      const same = await save(fields);
      assert.equal(same.status, 422, name);
      assert.match(visibleText(same), /Nothing is changed, so there is nothing to save/, name);
      const lines = `${fields['text']}more`;
      assert.equal((await save({ ...fields, text: lines.replaceAll('\n', '\r\n') })).status, 303, name);
      const end = text.includes('\r\n') ? '\r\n' : '\n';
      assert.equal(String(await fetched('main', name)), `${text}more`, name);
      const again = await opened(name);
      assert.equal((await save({ ...again, text: `${lines}\r\nlast\r\n` })).status, 303, name);
      assert.equal(String(await fetched('main', name)), `${text}more${end}last${end}`, name);
    }
    assert.equal((await browser.get(`${home}/blob/main/odd`)).status, 200);
    await git(work, ['fsck', '--strict']);
  });

  test('is not offered where a browser would change other bytes, and the page says why', async (context) => {
    const files = {
      mixed: 'one\r\ntwo\n',
      return: 'one\rtwo\n',
      nul: 'a\0b',
      latin1: Buffer.from('Gr\xfc\xdfe\n', 'latin1'),
      utf16: Buffer.from('\ufeffone\n', 'utf16le'),
      large: 'x'.repeat(EDITED_TEXT_BYTES_MAX + 1),
      fits: 'x'.repeat(EDITED_TEXT_BYTES_MAX),
    };
    const { home, head, opened, save } = await pushed(context, files);
    const whys = {
      mixed: /Not editable: its lines end in different ways/,
      return: /Not editable: its lines end in different ways/,
      nul: /Not editable: it is not text/,
      latin1: /Not editable: it is not in UTF-8/,
      utf16: /Not editable: it is not text/,
      large: /Not editable: it is larger than 1 MiB/,
    };
    for (const [name, why] of Object.entries(whys)) {
      const page = await browser.get(`${home}/blob/main/${name}`);
      assert.match(visibleText(page), why, name);
      assert.doesNotMatch(page.html, />Edit</, name);
      const edit = await browser.get(`${home}/edit/main/${name}`);
      assert.equal(edit.status, 422, name);
      assert.match(visibleText(edit), /The file cannot be edited here: it/, name);
    }
    for (const ref of [head, 'HEAD']) {
      const page = await browser.get(`${home}/blob/${ref}/fits`);
      assert.equal(/>Edit</.test(page.html), ref === 'HEAD', ref);
    }
    assert.equal((await browser.get(`${home}/edit/${head}/fits`)).status, 422);
    assert.equal((await browser.get(`${home}/edit/main/nothing`)).status, 404);
    const fields = await opened('fits');
    const over = await save({ ...fields, text: 'y'.repeat(EDITED_TEXT_BYTES_MAX + 1) });
    assert.equal(over.status, 422);
    assert.match(visibleText(over), /A text has at most 1 MiB/);
    assert.equal((await save({ ...fields, text: 'y'.repeat(EDITED_TEXT_BYTES_MAX) })).status, 303);
  });

  test(`takes a form of ${WRITING_FORM_BYTES_MAX} bytes, and no larger one`, async (context) => {
    const { home, opened, save } = await pushed(context, { text: 'a\n' });
    const fields = await opened('text');
    // A text of line ends alone is sent as twice its bytes.
    assert.equal((await save({ ...fields, text: '\r\n'.repeat(EDITED_TEXT_BYTES_MAX) })).status, 303);
    const { cookies } = browser;
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const form = await browser.get(`${home}/settings`);
    const [, token = ''] = /name="_csrf" value="([^"]+)"/.exec(form.html) ?? [];
    const part = (name: string, value: string): string =>
      `--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const rest = part('_csrf', token).length + part('text', '').length + '--x--\r\n'.length;
    for (const [bytes, status] of [
      [WRITING_FORM_BYTES_MAX, 404],
      [WRITING_FORM_BYTES_MAX + 1, 413],
    ] as const) {
      const body = `${part('_csrf', token)}${part('text', 'y'.repeat(bytes - rest))}--x--\r\n`;
      assert.equal(body.length, bytes);
      const headers = { cookie, origin: strata.url, 'content-type': 'multipart/form-data; boundary=x' };
      const answer = await fetch(`${strata.url}${home}/edit`, { method: 'POST', headers, body });
      assert.equal(answer.status, status, `${bytes}`);
      await answer.text();
    }
  });

  test('on a branch that others pushed to saves on top of what did not touch the file', async (context) => {
    const { work, opened, save, commit, fetched } = await pushed(context, { mine: 'a\n', other: 'b\n' });
    const fields = await opened('mine');
    const theirs = await commit({ other: 'theirs\n' });
    assert.equal((await save({ ...fields, text: 'mine\n' })).status, 303);
    assert.equal(String(await fetched('main', 'mine')), 'mine\n');
    assert.equal((await git(work, ['rev-parse', 'FETCH_HEAD^'])).trim(), theirs);
    assert.equal(String(await fetched('main', 'other')), 'theirs\n');
  });

  // The story: two people open one file, and the second to save must not undo the first unseen.
  test('that somebody else has changed since shows both texts, and saves on top once that was seen', async (context) => {
    const { opened, save, commit, fetched } = await pushed(context, { file: 'before\n' });
    const fields = await opened('file');
    await commit({ file: 'theirs <b>\n' });
    const conflict = await save({ ...fields, text: 'mine\n', message: 'My reason' });
    assert.equal(conflict.status, 409);
    assert.match(visibleText(conflict), /Somebody changed this file since you opened it\. Nothing was saved yet/);
    assert.match(
      conflict.html,
      /<label for="theirs">Their text<\/label><textarea [^>]*readonly[^>]*>\ntheirs &#60;b&#62;\n</,
    );
    const shown = mainForm(conflict);
    assert.deepEqual([shown['text'], shown['message']], ['mine\n', 'My reason']);
    assert.equal(String(await fetched('main', 'file')), 'theirs <b>\n');
    await commit({ file: 'theirs again\n' });
    const again = await save(shown);
    assert.equal(again.status, 409);
    assert.match(visibleText(again), /theirs again/);
    assert.equal((await save(mainForm(again))).status, 303);
    assert.equal(String(await fetched('main', 'file')), 'mine\n');
  });

  test('that was deleted since keeps the text, which can be saved on a new branch', async (context) => {
    const { work, url, opened, save, commit, fetched, home } = await pushed(context, { file: 'before\n', other: '' });
    const fields = await opened('file');
    await git(work, ['rm', '--quiet', 'file']);
    await commit({ other: 'b' });
    const gone = await save({ ...fields, text: 'mine\n' });
    assert.equal(gone.status, 409);
    assert.match(visibleText(gone), /The file was deleted or replaced/);
    assert.equal(mainForm(gone)['text'], 'mine\n');
    const kept = await save({ ...mainForm(gone), where: 'new', new_branch: 'rescue' });
    assert.equal(kept.location, `${home}/blob/rescue/file`);
    assert.equal(String(await fetched('rescue', 'file')), 'mine\n');
    assert.equal((await git(work, ['rev-parse', 'FETCH_HEAD^'])).trim(), fields['head']);
    await git(work, ['push', '--quiet', url, ':refs/heads/rescue', 'HEAD:refs/heads/kept']);
    const later = mainForm(await browser.get(`${home}/edit/kept/other`));
    await git(work, ['push', '--quiet', url, ':refs/heads/kept']);
    const without = await save({ ...later, text: 'c' });
    assert.equal(without.status, 409);
    assert.match(visibleText(without), /The branch kept was deleted since this page was opened/);
    assert.equal(mainForm(without)['text'], 'c');
  });

  test('on a new branch refuses names that are taken or that no branch has, beside the field', async (context) => {
    const { opened, save } = await pushed(context, { file: 'a\n' });
    const fields = { ...(await opened('file')), text: 'b\n', where: 'new' };
    for (const [name, status, words] of [
      ['', 422, /Name the new branch/],
      ['main', 409, /main: it exists already/],
      ['main/below', 422, /main\/below: a ref cannot be a folder of another/],
      ['two..dots', 422, /two\.\.dots: /],
      ['HEAD', 422, /HEAD: /],
      ['<script>', 303, /^/],
    ] as const) {
      const answer = await save({ ...fields, new_branch: name });
      assert.equal(answer.status, status, name);
      if (status === 303) continue;
      assert.match(visibleText(answer), words, name);
      assert.match(answer.html, /<a href="#new_branch">/, name);
      assert.equal(mainForm(answer)['text'], 'b\n', name);
    }
    const silent = await save({ ...fields, where: 'branch', message: '  ' });
    assert.match(silent.html, /<a href="#message">Say what the commit changes\./);
  });

  test('reaches files of any name, and shows none of them as markup', async (context) => {
    const odd = ['a "quoted" <b>', 'line\nend', 'rtl\u202etxt.c', 'per%20cent', 'plus + &amp;=?#', ' blank '];
    const files = Object.fromEntries(odd.map((name) => [name, 'a\n']));
    const { home, work, url, save } = await pushed(context, files);
    // No file system of every platform takes a name that is not UTF-8: git writes it as a tree.
    const blob = (await git(work, ['rev-parse', 'HEAD:line\nend'])).trim();
    assert.equal(blob, createHash('sha1').update('blob 2\0a\n').digest('hex'));
    const entries = [...odd.map((name) => Buffer.from(name)), Buffer.from([0x66, 0xff, 0x6f])];
    const listing = Buffer.concat(
      entries.flatMap((name) => [Buffer.from(`100644 blob ${blob}\t`), name, Buffer.from([0])]),
    );
    const tree = (await git(work, ['mktree', '-z'], listing)).trim();
    const commit = (await git(work, ['commit-tree', tree, '-p', 'HEAD', '-m', 'Odd names'])).trim();
    await git(work, ['push', '--quiet', url, `${commit}:refs/heads/main`]);
    for (const name of entries) {
      const encoded = [...name].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
      const page = await browser.get(`${home}/edit/main/${encoded}`);
      assert.equal(page.status, 200, encoded);
      assert.doesNotMatch(page.html, /<b>|\u202e/, encoded);
      const saved = await save({ ...mainForm(page), text: 'b\n' });
      assert.equal(saved.status, 303, encoded);
      assert.match(visibleText(await browser.follow(saved)), / is saved in commit/, encoded);
    }
    await git(work, ['fetch', '--quiet', url, 'main']);
    const stored = await git(work, ['ls-tree', '-z', '--format=%(objectname)', 'FETCH_HEAD']);
    const ids = new Set(stored.split('\0').filter((id) => id !== ''));
    assert.deepEqual([...ids], [createHash('sha1').update('blob 2\0b\n').digest('hex')]);
  });

  // The attack: a page of another site sends its text in the name of somebody who is signed in.
  test('takes no form of another site, and gives the text back whose form is out of date', async (context) => {
    const { home, opened, fetched } = await pushed(context, { file: 'a\n' });
    const fields = { ...(await opened('file')), text: 'what I wrote <b>\n' };
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    body.append('_csrf', 'old');
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const post = (headers: Record<string, string>) =>
      fetch(`${strata.url}${home}/edit`, { method: 'POST', redirect: 'manual', headers, body });
    const foreign = await post({ cookie, origin: 'https://evil.example' });
    assert.equal(foreign.status, 403);
    assert.doesNotMatch(await foreign.text(), /what I wrote/);
    for (const headers of [{ cookie, origin: strata.url }, { origin: strata.url }]) {
      const old = await post(headers);
      assert.equal(old.status, 403);
      const html = await old.text();
      assert.match(html, /This form is out of date/);
      assert.match(html, /What you wrote, to copy<\/label><textarea [^>]*readonly[^>]*>\nwhat I wrote &#60;b&#62;\n</);
    }
    assert.equal(String(await fetched('main', 'file')), 'a\n');
    const eve = await signIn(strata, await createAccount(strata, `eve-${names}`));
    assert.equal((await eve.get(`${home}/edit/main/file`)).status, 404);
    assert.equal((await eve.submitParts(`${home}/edit`, { fields }, '/settings')).status, 404);
    for (const broken of [{ head: 'x' }, { blob: '' }, { path: '../x' }, { path: '' }, { branch: '' }]) {
      const answer = await browser.submitParts(
        `${home}/edit`,
        { fields: { ...fields, ...broken } },
        `${home}/settings`,
      );
      assert.equal(answer.status, 404, JSON.stringify(broken));
    }
  });
});
