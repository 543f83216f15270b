/**
 * Comparisons, and what branches, commits and activity say of pushes: what real git pushed, in a browser without
 * scripts.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { PAGE_BYTES_MAX } from '../../../../apps/website/layout/weight.ts';
import { suiteEnding } from '../../../support/cleanup.ts';
import type { SiteBrowser, SitePage } from '../../../support/form-browser.ts';
import { signIn } from '../../../support/site-browser.ts';
import {
  type Account,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../../../support/strata.ts';
import { sharedParts, startNode } from '../../../support/strata-on-postgres.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const HOSTILE = '<img/src=x>"onerror=alert(1)';

/** A branch of as many commits and files as a page lists, for git fast-import. */
function wideHistory(): string {
  const commit = (number: number, changes: string): string =>
    `commit refs/heads/wide\nmark :${number}\ncommitter C <c@example.org> ${1_700_000_000 + number} +0000\ndata 1\nx\n${
      number === 1 ? '' : `from :${number - 1}\n`
    }${changes}\n`;
  const file = (_: unknown, number: number) => `M 100644 inline ${'folder/'.repeat(10)}file-${number}\ndata 1\nx\n`;
  const files = Array.from({ length: 120 }, file).join('');
  return Array.from({ length: 60 }, (_, number) => commit(number + 1, number === 0 ? files : '')).join('');
}

describe('The pages of comparisons and pushes', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;
  let work: string;
  let url: string;
  let base: string;
  let forced: string;

  const rev = async (name: string): Promise<string> => (await git(work, ['rev-parse', name])).trim();
  const page = async (address: string): Promise<SitePage> => {
    const shown = await browser.get(address);
    assert.equal(shown.status, 200, `${address}: ${shown.html.slice(0, 2_000)}`);
    assert.ok(shown.bytes.length < PAGE_BYTES_MAX, `${address} has ${shown.bytes.length} bytes`);
    assert.ok(!shown.html.includes('<img/src'), address);
    return shown;
  };
  const textOf = ({ html }: SitePage): string => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');

  const links = ({ html }: SitePage): string[] =>
    [...html.matchAll(/href="([^"]*)"/g)].map(([, link = '']) =>
      link.replaceAll('&#61;', '=').replaceAll('&#38;', '&'),
    );

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    browser = await signIn(strata, ada);
    work = await newWorkTree(ending);
    url = await createRepository(strata, ada, 'engine');
    await commitFile(work, 'one', '1\n');
    base = await rev('HEAD');
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/main']);
    await git(work, ['checkout', '-q', '-b', 'feature/one']);
    await commitFile(work, 'two', '2\n');
    await commitFile(work, 'two', '3\n');
    forced = await rev('HEAD');
    await git(work, ['tag', '-a', 'v1.9', '-m', `Nine ${HOSTILE}`]);
    await git(work, ['tag', 'v1.10', base]);
    await git(work, ['branch', HOSTILE, base]);
    await git(work, ['push', '--quiet', url, 'refs/heads/feature/*', `refs/heads/${HOSTILE}`, 'refs/tags/*']);
    await git(work, ['checkout', '-q', '-B', 'main', base]);
    await commitFile(work, 'three', '3\n');
    await git(work, ['push', '--quiet', url, 'main', `+${forced}~1:refs/heads/feature/one`]);
    await git(work, ['push', '--quiet', url, ':refs/tags/v1.9', ':refs/heads/feature/one']);
    await git(work, ['push', '--quiet', url, `${forced}:refs/heads/feature/one`, 'refs/tags/v1.9']);
  });

  test('lead from each branch to what it has that the default branch lacks', async () => {
    const branches = await page('/ada/engine/branches');
    assert.ok(links(branches).includes('/ada/engine/compare?base=main&head=feature%2Fone'));
    assert.match(textOf(branches), /feature\/one 2 ahead , 1 behind/);
    assert.match(textOf(await page(`/ada/engine/branches?q=${encodeURIComponent(HOSTILE)}`)), /1 branch/);
  });

  test('compare two branches, and keep names that do not exist in the form', async () => {
    const compared = await page('/ada/engine/compare?base=main&head=feature%2Fone');
    const text = textOf(compared);
    assert.match(text, /feature\/one has 2 commits that main lacks, and lacks 1 commit\./);
    assert.match(text, new RegExp(`since ${base.slice(0, 7)}`));
    assert.match(text, /Write two .*1 file \+1/);
    const alone = await page('/ada/engine/compare?base=main&head=feature%2Fone&file=0');
    assert.match(textOf(alone), /All files/);
    assert.ok(links(alone).includes('/ada/engine/compare?base=main&head=feature%2Fone'));
    const missing = await browser.get(`/ada/engine/compare?base=main&head=${encodeURIComponent(HOSTILE)}x`);
    assert.equal(missing.status, 404);
    assert.match(missing.html, /value="&#60;img\/src&#61;x&#62;&#34;onerror/);
    assert.match(textOf(await page('/ada/engine/compare')), /Name two branches/);
    for (const head of ['--output=/tmp/x', 'main~1', 'main..feature/one']) {
      assert.equal((await browser.get(`/ada/engine/compare?head=${encodeURIComponent(head)}`)).status, 404, head);
    }
  });

  test('show every change of a ref as an event, forced ones and deletions marked', async () => {
    const activity = await page('/ada/engine/activity');
    const text = textOf(activity);
    assert.match(
      text,
      new RegExp(`Force-pushed the branch feature/one ${forced.slice(0, 7)} → [0-9a-f]{7} .* · event 3`),
    );
    assert.match(text, /Deleted the tag v1\.9/);
    assert.match(text, new RegExp(`Created the branch main ${base.slice(0, 7)}`));
    assert.ok(text.indexOf('event 5') < text.indexOf('event 0'), 'newest first');
    assert.doesNotMatch(activity.html, /[0-9]\.[0-9]+\.[0-9]+\.[0-9]+/, 'no address of a client');
  });

  test('lead from a forced push and a deletion to the purge, on their rows and the pages of their events', async () => {
    const { html } = await page('/ada/engine/activity');
    const offers = new Map<string, boolean>();
    for (const [row] of html.matchAll(/<li class.*?<\/li>/gs)) {
      const leaves = /Force-pushed|>Deleted|Deleted the/.test(row);
      assert.equal(/href="\/ada\/engine\/purge"/.test(row), leaves, row);
      const [, event = ''] = /href="(\/history\/[^"]+)"/.exec(row) ?? [];
      offers.set(event, leaves || offers.get(event) === true);
    }
    assert.deepEqual(new Set(offers.values()), new Set([true, false]));
    for (const [event, leaves] of offers) {
      assert.equal(links(await page(event)).includes('/ada/engine/purge'), leaves, event);
    }
  });

  test('say on a commit which push brought it, by which token, as which event', async () => {
    assert.match(textOf(await page(`/ada/engine/commit/${base}`)), /Pushed .* with the token .*, as event 0 of the/);
    assert.match(textOf(await page(`/ada/engine/commit/${forced}`)), /as event 2 of the/);
  });

  /** The addresses as of each event, oldest first, as the activity names them. */
  const moments = async (): Promise<readonly string[]> => {
    const found = links(await page('/ada/engine/activity')).flatMap((link) => /\?at=(.*)$/.exec(link)?.[1] ?? []);
    return [...new Set(found)].toReversed();
  };

  test('lead from each change to the repository as it stood with it, and stay there', async () => {
    const [, pushed = '', , deleted = ''] = await moments();
    const home = await page(`/ada/engine?at=${pushed}`);
    assert.match(textOf(home), /As of \d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC with event 2/);
    assert.match(home.html, new RegExp(`/r/ada/engine@${pushed}\\.git`));
    const file = `/ada/engine/blob/feature%2Fone/two?at=${pushed}`;
    const seen = new Set([`/ada/engine?at=${pushed}`]);
    for (const address of seen) {
      const shown = await browser.get(address);
      if (shown.status === 302 || shown.status === 303) continue;
      assert.equal(shown.status, 200, address);
      if (!address.includes('/raw/')) assert.match(textOf(shown), /As of .* with event 2/, address);
      const more = links(shown).filter((link) => /^\/ada\/engine(\/(?!activity|settings|restore)|\?)/.test(link));
      for (const link of more) assert.ok(link.includes(`at=${pushed}`), `${address} leads to ${link}`);
      for (const link of more) if (seen.size < 30) seen.add(link.split('#')[0] ?? '');
    }
    assert.ok([...seen].some((address) => address.startsWith('/ada/engine/commit/')));
    assert.match(textOf(await page(file)), /3 /);
    assert.match(
      textOf(await page(`/ada/engine/commits/feature%2Fone?at=${pushed}`)),
      /Write two .*Write two .*Write one/,
    );
    const commits = textOf(await page(`/ada/engine/commits/main?at=${pushed}`));
    assert.match(commits, /Write one/);
    assert.doesNotMatch(commits, /Write three/);
    assert.match(textOf(await page(`/ada/engine/branches?at=${pushed}`)), /feature\/one/);
    assert.doesNotMatch(textOf(await page(`/ada/engine/branches?at=${deleted}`)), /feature\/one/);
    assert.doesNotMatch(textOf(await page('/ada/engine')), /As of/);
  });

  test('give the address that clones what they show', async (context) => {
    const [, pushed = '', , deleted = ''] = await moments();
    const at = (moment: string): string => url.replace('.git', `@${moment}.git`);
    assert.match(await git(work, ['ls-remote', at(pushed)]), new RegExp(`${forced}\trefs/heads/feature/one`));
    assert.doesNotMatch(await git(work, ['ls-remote', at(deleted)]), /feature\/one/);
    const folder = await tempDir(context);
    await git(folder, ['clone', '--quiet', '--branch', 'feature/one', at(pushed), '.']);
    assert.equal((await git(folder, ['rev-parse', 'HEAD'])).trim(), forced);
  });

  test('take a time in any form, and say why there is nothing to show', async () => {
    const now = new Date();
    for (const at of [now.toISOString(), now.toISOString().replace('Z', '+00:00')]) {
      assert.match(textOf(await page(`/ada/engine/branches?at=${at}`)), /As of/, at);
    }
    const later = new Date(now.getTime() + 600_000).toISOString();
    for (const [at, title] of [
      ['yesterday', 'No such moment'],
      ['', 'No such moment'],
      [HOSTILE, 'No such moment'],
      [later, 'This moment has not come yet'],
      ['2020-01-01T00:00:00Z', 'Not made yet'],
      ['0190f3e2-7c1a-7b4e-9a35-2b8f5f0f7a11', 'No such event'],
    ] as const) {
      const shown = await browser.get(`/ada/engine?at=${encodeURIComponent(at)}`);
      assert.equal(shown.status, 404, at);
      assert.ok(textOf(shown).includes(title), `${at}: ${textOf(shown)}`);
      assert.ok(!shown.html.includes('<img/src'));
    }
  });

  // The attack: somebody with an account of their own reads which commits were forced away elsewhere.
  test('are not found for another account’s repository, as for one that does not exist', async () => {
    const eve = await signIn(strata, await createAccount(strata, 'eve'));
    await createRepository(strata, ada, 'fresh');
    assert.equal((await browser.get('/ada/fresh/compare?head=main')).status, 404);
    const [moment = ''] = await moments();
    const past = [`branches?at=${moment}`, `tree/main?at=${moment}`, 'branches?at=never'];
    for (const kind of ['branches', 'tags', 'activity', 'compare?head=main', ...past]) {
      const theirs = await eve.get(`/ada/engine/${kind}`);
      const nothing = await eve.get(`/ada/nothing/${kind}`);
      assert.deepEqual([theirs.status, nothing.status], [404, 404], kind);
    }
  });

  test('stay below their weight with many commits and many files', async () => {
    await git(work, ['fast-import', '--quiet'], wideHistory());
    await git(work, ['push', '--quiet', url, 'wide']);
    const compared = await page('/ada/engine/compare?base=main&head=wide');
    const [, listed = ''] = /The first (\d+) files are shown/.exec(compared.html) ?? [];
    assert.ok(Number(listed) >= 10 && Number(listed) < 100, `${listed} files`);
    const alone = await page(`/ada/engine/commit/${await rev('wide~59')}`);
    assert.ok(Number(/The first (\d+) files are shown/.exec(alone.html)?.[1]) > Number(listed));
  });
});
