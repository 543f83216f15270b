/** Branches and tags that people create and delete on the website, as the real git sees them. */
import assert from 'node:assert/strict';
import { beforeAll, describe, type TestContext, test } from 'vitest';
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

describe('Branches and tags on the website', () => {
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

  async function pushed(context: TestContext) {
    const name = `repository-${++names}`;
    const url = await createRepository(strata, ada, name);
    const work = await newWorkTree(context);
    const head = (await git(work, ['rev-parse', 'HEAD'])).trim();
    await git(work, ['tag', '--annotate', '--message', 'One', 'v1']);
    await git(work, ['push', '--quiet', url, 'main', 'v1']);
    const home = `/ada/${name}`;
    const refs = async (): Promise<Record<string, string>> => {
      const lines = (await git(work, ['ls-remote', '--refs', url])).trim().split('\n');
      return Object.fromEntries(lines.map((line) => line.split('\t').toReversed()));
    };
    const submit = (path: string, fields: Record<string, string>): Promise<SitePage> =>
      browser.submit(`${home}/${path}`, fields, `${home}/settings`);
    const submitParts = (path: string, fields: Record<string, string>): Promise<SitePage> =>
      browser.submitParts(`${home}/${path}`, { fields }, `${home}/settings`);
    const undo = async (page: SitePage): Promise<void> => {
      const [, link = ''] = /<a href="([^"]*)">Undo<\/a>/.exec(page.html) ?? [];
      const plan = await browser.get(decodedText(link));
      assert.equal(plan.status, 200, link);
      const done = await browser.submit(`${home}/restore`, mainForm(plan), decodedText(link));
      assert.equal(done.status, 303);
    };
    return { home, url, work, head, refs, submit, submitParts, undo };
  }

  test('a branch is created at a branch, a tag or a commit, with its undoing', async (context) => {
    const { home, head, refs, submit, undo } = await pushed(context);
    assert.match((await browser.get(`${home}/branches`)).html, new RegExp(`href="${home}/new-branch"`));
    assert.deepEqual(mainForm(await browser.get(`${home}/new-branch`)), { name: '', at: 'main' });
    for (const at of ['main', 'v1', head]) {
      const made = await submit('new-branch', { name: `from/${at}`, at });
      assert.equal(made.location, `${home}/branches`);
      const page = await browser.follow(made);
      assert.match(visibleText(page), new RegExp(`The branch from/${at} is created\\. Undo`));
      assert.equal((await refs())[`refs/heads/from/${at}`], head);
      await undo(page);
      assert.equal((await refs())[`refs/heads/from/${at}`], undefined);
    }
    for (const [name, at, status, words] of [
      ['main', 'main', 409, /refs\/heads\/main: it exists already/],
      ['a..b', 'main', 422, /refs\/heads\/a\.\.b: /],
      ['main/below', 'main', 422, /a ref cannot be a folder of another/],
      ['', 'main', 422, /Enter a name for the branch/],
      ['fine', 'nowhere', 422, /No branch, tag or commit has this name/],
      ['fine', '', 422, /No branch, tag or commit has this name/],
      ['fine', '1'.repeat(40), 422, /No branch, tag or commit has this name/],
    ] as const) {
      const refused = await submit('new-branch', { name, at });
      assert.equal(refused.status, status, `${name} ${at}`);
      assert.match(visibleText(refused), words, `${name} ${at}`);
      assert.deepEqual(mainForm(refused), { name, at });
    }
    const { html } = await submit('new-branch', { name: '', at: 'nowhere' });
    assert.match(html, /id="errors"><p><a href="#name">.*<p><a href="#at">/);
  });

  test('a tag is created, annotated if it has a message', async (context) => {
    const { home, head, work, url, refs, submitParts, undo } = await pushed(context);
    assert.match((await browser.get(`${home}/tags`)).html, new RegExp(`href="${home}/new-tag"`));
    const light = await submitParts('new-tag', { name: 'light', at: 'main', message: '' });
    assert.equal(light.location, `${home}/tags`);
    const page = await browser.follow(light);
    assert.match(visibleText(page), /The tag light is created\. Undo/);
    assert.equal((await refs())['refs/tags/light'], head);
    await undo(page);
    assert.equal((await refs())['refs/tags/light'], undefined);
    assert.equal((await submitParts('new-tag', { name: 'v2', at: 'v1', message: 'Two\r\n\r\nlines' })).status, 303);
    await git(work, ['fetch', '--quiet', url, 'refs/tags/v2:refs/tags/v2']);
    const shown = await git(work, ['cat-file', 'tag', 'v2']);
    assert.match(shown, new RegExp(`^object ${head}\ntype commit\ntag v2\ntagger ada <ada@users\\.noreply\\.`));
    assert.match(shown, /\n\nTwo\n\nlines\n$/);
    const taken = await submitParts('new-tag', { name: 'v2', at: 'main', message: 'kept' });
    assert.equal(taken.status, 409);
    assert.match(taken.html, /<a href="#name">/);
    assert.equal(mainForm(taken)['message'], 'kept');
  });

  test('are deleted after a page that asks, and come back', async (context) => {
    const { home, head, refs, submit, undo, work, url } = await pushed(context);
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/topic']);
    const before = await refs();
    for (const [list, ref, name] of [
      ['branches', 'refs/heads/topic', 'branch topic'],
      ['tags', 'refs/tags/v1', 'tag v1'],
    ] as const) {
      const rows = await browser.get(`${home}/${list}`);
      const [, link = ''] = /<a class="soft" href="([^"]*delete-ref[^"]*)">/.exec(rows.html) ?? [];
      assert.equal(decodedText(link), `${home}/delete-ref?ref=${encodeURIComponent(ref)}`);
      const ask = await browser.get(decodedText(link));
      assert.match(visibleText(ask), new RegExp(`Delete the ${name} `));
      assert.deepEqual(mainForm(ask), { ref, expected: before[ref] });
      const done = await submit('delete-ref', mainForm(ask));
      assert.equal(done.location, `${home}/${list}`);
      const page = await browser.follow(done);
      assert.match(visibleText(page), new RegExp(`The ${name} is deleted\\. Undo`));
      assert.equal((await refs())[ref], undefined);
      await undo(page);
      assert.deepEqual(await refs(), before);
    }
    assert.equal(before['refs/heads/topic'], head);
  });

  // The story: somebody pushes to the branch after the page that asks was opened.
  test('are deleted only as their writer saw them, and are out of reach for others', async (context) => {
    const { home, refs, submit, work, url } = await pushed(context);
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/topic']);
    const fields = mainForm(await browser.get(`${home}/delete-ref?ref=refs/heads/topic`));
    await git(work, ['commit', '--quiet', '--allow-empty', '--message', 'More']);
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/topic']);
    const refused = await submit('delete-ref', fields);
    assert.equal(refused.status, 409);
    assert.match(visibleText(refused), /It was changed since this page was opened/);
    assert.equal(mainForm(refused)['expected'], (await refs())['refs/heads/topic']);
    assert.equal((await submit('delete-ref', mainForm(refused))).status, 303);
    assert.equal((await submit('delete-ref', fields)).status, 404);
    for (const ref of ['topic', 'refs/notes/x', 'refs/heads/', '']) {
      assert.equal(
        (await browser.get(`${home}/delete-ref?${new URLSearchParams({ ref }).toString()}`)).status,
        404,
        ref,
      );
      assert.equal((await submit('delete-ref', { ...fields, ref })).status, 404, ref);
    }
    const eve = await signIn(strata, await createAccount(strata, `eve-${names}`));
    for (const page of ['new-branch', 'new-tag', 'delete-ref?ref=refs/heads/main', 'create', 'upload/main']) {
      assert.equal((await eve.get(`${home}/${page}`)).status, 404, page);
    }
    const post = await browser.post(`${home}/delete-ref`, { ...fields, ref: 'refs/heads/main' });
    assert.equal(post.status, 403, 'without a token');
    assert.match((await browser.get(`${home}/branches`)).html, /new-branch/);
    const [, event = ''] = /history\/([0-9a-f-]{36})/.exec((await browser.get(`${home}/activity`)).html) ?? [];
    const past = await browser.get(`${home}/branches?at=${event}`);
    assert.equal(past.status, 200);
    assert.doesNotMatch(past.html, /new-branch|delete-ref/);
  });
});
