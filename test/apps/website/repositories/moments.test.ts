/** The past of a repository on every page: the moment and the pushes to choose from, and what changed between two. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { PAGE_BYTES_MAX } from '../../../../apps/website/layout/weight.ts';
import { suiteEnding } from '../../../support/cleanup.ts';
import type { SiteBrowser, SitePage } from '../../../support/form-browser.ts';
import { decodedText, visibleText } from '../../../support/main-form.ts';
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

describe('The moments of a repository', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;
  let older: string;
  let tip: string;
  /** The events of the pushes, the oldest first. */
  let events: readonly string[];
  /** A time between the first push and the second. */
  let between: string;

  const page = async (address: string): Promise<SitePage> => {
    const shown = await browser.get(address);
    assert.equal(shown.status, 200, `${address}: ${visibleText(shown).slice(0, 2_000)}`);
    return shown;
  };
  const titleOf = ({ html }: SitePage): string => decodedText(/<title>([^<]*)/.exec(html)?.[1] ?? '');
  const picker = ({ html }: SitePage): string =>
    /<details class="pop moment">[^]*?<\/details>/.exec(html)?.[0] ?? assert.fail('no picker');
  const eventsOn = ({ html }: SitePage): readonly string[] =>
    [...html.matchAll(/name="moment" value="([^"]*)"/g)].map(([, event = '']) => event);

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    browser = await signIn(strata, ada);
    const work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'past');
    await commitFile(work, 'folder/text', 'one\n');
    older = (await git(work, ['rev-parse', 'HEAD'])).trim();
    await git(work, ['push', '--quiet', url, 'main', 'main:refs/heads/gone']);
    between = new Date(Date.now() + 1).toISOString();
    await new Promise((resolve) => setTimeout(resolve, 20));
    await git(work, ['commit', '--quiet', '--amend', '--message', 'Another']);
    await commitFile(work, 'folder/text', 'two\n');
    await commitFile(work, 'added', 'added\n');
    tip = (await git(work, ['rev-parse', 'HEAD'])).trim();
    await git(work, ['push', '--quiet', '--force', url, 'main', ':gone', 'main:refs/tags/v1']);
    events = eventsOn(await page('/ada/past/moments')).toReversed();
    assert.equal(events.length, 2);
  });

  test('are offered on every page, which leads to itself at the moment that is written', async () => {
    const pages = ['', '/tree/main/folder', '/blob/main/folder/text?from=1', '/commits/main', `/commit/${tip}`];
    for (const place of [...pages, '/branches', '/tags', '/compare/main...v1', '/search?q=one']) {
      const found = picker(await page(`/ada/past${place}`));
      assert.match(found, /As of now/);
      assert.match(found, /<form class="stack tight">/, 'it is sent to the page itself');
      assert.match(found, /<input id="moment-at" name="at" type="datetime-local" value="\d{4}-\d\d-\d\dT/);
      assert.ok(decodedText(found).includes(`name="of" value="${place}"`), place);
    }
    for (const place of ['/activity', '/settings', '/moments', '/changes', '/edit/main/folder/text', '/new-tag']) {
      const found = picker(await page(`/ada/past${place}`));
      assert.match(found, /action="\/ada\/past"/, `${place} shows no moment`);
      assert.match(found, /name="of" value=""/, place);
    }
    const searched = picker(await page('/ada/past/search?q=one'));
    assert.match(searched, /<input type="hidden" name="q" value="one">/);
  });

  test('are taken as a browser’s field sends them, in UTC, with or without seconds', async () => {
    const written = between.replace('Z', '');
    const shown = await page(`/ada/past/blob/main/folder/text?at=${encodeURIComponent(written)}`);
    assert.match(visibleText(shown), /As of \d+ \w+ \d{4}, .* UTC Nothing newer is shown.* one/);
    assert.match(picker(shown), new RegExp(`value="${written.replace(/\.000$/, '')}"`));
    const minute = await browser.get(`/ada/past?at=${written.slice(0, 16)}`);
    assert.ok(minute.status === 200 || visibleText(minute).includes('Not created yet'), 'the minute is a moment');
    const later = await browser.get('/ada/past?at=2999-01-01T00:00');
    assert.equal(later.status, 404);
    assert.match(visibleText(later), /This moment has not come yet/);
    assert.match(later.html, /<nav class="tabs" aria-label="Repository"/, 'a problem keeps the head');
  });

  test('can be chosen from the pushes, and lead back to the page that they were chosen for', async () => {
    const place = '/blob/main/folder/text';
    const list = await page(`/ada/past/moments?of=${encodeURIComponent(place)}`);
    assert.match(visibleText(list), /Shows \/blob\/main\/folder\/text as it was with a push/);
    const chosen = await browser.get(`/ada/past/moments?of=${encodeURIComponent(place)}&moment=${events[0]}`);
    assert.deepEqual([chosen.status, chosen.location], [303, `/ada/past${place}?at=${events[0]}`]);
    assert.match(visibleText(await page(chosen.location ?? '')), / one/);
    const query = encodeURIComponent('/compare?base=main&head=gone');
    const compared = await browser.get(`/ada/past/moments?of=${query}&moment=${events[0]}`);
    assert.equal(compared.location, `/ada/past/compare?base=main&head=gone&at=${events[0]}`);
    assert.equal((await browser.get('/ada/past/moments?moment=never')).status, 404);
    assert.match(visibleText(await page('/ada/past/moments?before=0')), /Nothing was pushed before/);
  });

  // The attack: a link that somebody sent leads the owner away from the repository, or to another site.
  test('lead nowhere but to the repository', async () => {
    for (const place of [
      '//evil.example',
      '/../../eve',
      '/..%2f',
      'x',
      '@evil.example',
      '/%2e%2e/%2e%2e/settings',
      '\t',
    ]) {
      const led = await browser.get(`/ada/past/moments?of=${encodeURIComponent(place)}&moment=${events[0]}`);
      const { pathname, host } = new URL(led.location ?? '', strata.url);
      assert.equal(host, new URL(strata.url).host, place);
      assert.ok(pathname === '/ada/past' || pathname.startsWith('/ada/past/'), `${place} leads to ${pathname}`);
    }
  });

  test('say in the title which moment a page shows, as exactly as its address', async () => {
    assert.ok(titleOf(await page(`/ada/past/branches?at=${events[0]}`)).includes(`as of ${events[0]}`));
    assert.ok(titleOf(await page(`/ada/past/branches?at=${between}`)).includes(`as of ${between}`));
    assert.doesNotMatch(titleOf(await page('/ada/past/branches')), /as of/);
  });

  test('can be compared: the refs that changed, and the files of the default branch or of another ref', async () => {
    const band = decodedText((await page(`/ada/past?at=${between}`)).html);
    const [, address = ''] = /href="([^"]*)">What changed since/.exec(band) ?? [];
    const shown = await page(address);
    const text = visibleText(shown);
    assert.match(text, /Between .* UTC and now\./);
    assert.match(text, /3 branches and tags changed/);
    assert.match(text, new RegExp(`gone Deleted ${older.slice(0, 7)} –`));
    assert.match(text, new RegExp(`main Moved ${older.slice(0, 7)} ${tip.slice(0, 7)}`));
    assert.match(text, new RegExp(`v1 Created – ${tip.slice(0, 7)}`));
    assert.match(text, /Files of main 2 files/);
    assert.ok(titleOf(shown).includes(`Changes from ${between} to now`));
    // No ref reaches the older commit now: its links lead to the moment at which one did.
    const links = [...decodedText(shown.html).matchAll(/href="(\/ada\/past\/[^"]*)"/g)].map(([, link = '']) => link);
    assert.ok(links.some((link) => link.includes(`/commit/${older}?at=`)));
    for (const link of links.filter((one) => /\/(commit|blob)\//.test(one))) await page(link);
    const ofTag = visibleText(await page(`${address}&ref=v1`));
    assert.match(ofTag, /Files of v1 , which was not there before/);
    assert.match(visibleText(await page(`${address}&ref=gone`)), /It led to no commit at the later moment/);
    assert.match(
      visibleText(await page(`${address}&ref=nothing`)),
      /There was no branch or tag nothing at either moment/,
    );
    const alone = await page(`${address}&file=1`);
    assert.match(visibleText(alone), /folder\/text .*one .*two/);
    assert.notEqual(titleOf(alone), titleOf(shown));
  });

  test('are compared in their order, whichever is written first', async () => {
    const [first, second] = events;
    const text = visibleText(await page(`/ada/past/changes?since=${second}&until=${first}`));
    assert.match(text, /main Moved/);
    assert.match(text, new RegExp(`${older.slice(0, 7)} ${tip.slice(0, 7)}`));
    const nothing = visibleText(await page(`/ada/past/changes?since=${second}`));
    assert.match(nothing, /None changed\. .*No file differs/);
    assert.equal((await browser.get('/ada/past/changes?since=never')).status, 404);
    assert.equal((await browser.get(`/ada/past/changes?since=${first}&until=2999-01-01T00:00`)).status, 404);
    assert.match(visibleText(await page('/ada/past/changes')), /Choose two moments/);
  });

  test('stay on the bar of every page about a problem below the repository', async () => {
    await createRepository(strata, ada, 'nothing-there');
    for (const [address, status, tab] of [
      ['/ada/past/blob/main/no/such', 404, 'Code'],
      ['/ada/past/commits/no-such', 404, 'Commits'],
      ['/ada/past/no/such/page', 404, 'Code'],
      ['/ada/past/restore?before=x', 404, 'Activity'],
      ['/ada/past/restore?at=2999-01-01T00:00:00Z', 422, 'Activity'],
      ['/ada/nothing-there/tree/main', 404, 'Code'],
    ] as const) {
      const shown = await browser.get(address);
      assert.equal(shown.status, status, address);
      assert.match(shown.html, new RegExp(`aria-current="page">${tab}</a>`), address);
      assert.match(picker(shown), /As of now/, address);
      assert.match(visibleText(shown), /name this request/, address);
    }
    const commits = await page('/ada/nothing-there/commits');
    assert.match(visibleText(commits), /No commits yet .*create a file/);
    assert.match(visibleText(await page('/ada/nothing-there/branches')), /No branches yet .*first push/);
    const other = await browser.get('/ada/no-such-repository/no/such/page');
    assert.deepEqual([other.status, other.html.includes('class="tabs"')], [404, false]);
  });

  // The attack: somebody else reads what was forced away.
  test('are out of reach for others', async () => {
    const eve = await signIn(strata, await createAccount(strata, 'eve'));
    for (const place of ['moments', 'changes', `changes?since=${events[0]}`]) {
      assert.equal((await eve.get(`/ada/past/${place}`)).status, 404, place);
    }
  });

  test('are listed on small pages, also of an empty repository', async () => {
    await createRepository(strata, ada, 'fresh');
    const list = await page('/ada/fresh/moments');
    assert.match(visibleText(list), /Nothing was pushed yet\. Go to the repository/);
    const long = await page(`/ada/past/moments?of=${encodeURIComponent(`/blob/main/${'x'.repeat(3_000)}`)}`);
    assert.ok(long.bytes.length < PAGE_BYTES_MAX);
  });
});
