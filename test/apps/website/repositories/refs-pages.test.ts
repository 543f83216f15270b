/**
 * Comparisons, and what branches, commits and activity say of pushes: what real git pushed, in a browser without
 * scripts.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { PAGE_BYTES_MAX } from '../../../../apps/website/layout/weight.ts';
import { LONG_PAGE_BYTES_MAX } from '../../../../apps/website/rendering/weight.ts';
import { alikeCommits } from '../../../support/alike-commits.ts';
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
    assert.ok(links(branches).includes('/ada/engine/compare/main...feature/one'));
    assert.match(textOf(branches), /feature\/one 2 ahead , 1 behind/);
    assert.match(textOf(await page(`/ada/engine/branches?q=${encodeURIComponent(HOSTILE)}`)), /1 branch/);
    for (const list of ['branches', 'tags']) {
      const beyond = textOf(await page(`/ada/engine/${list}?page=9`));
      assert.match(beyond, /Nothing here of \d/);
      assert.doesNotMatch(beyond, /No (?:branches|tags) yet/);
    }
  });

  test('compare two branches, and keep names that do not exist in the form', async () => {
    const compared = await page('/ada/engine/compare/main...feature/one');
    const text = textOf(compared);
    assert.match(text, /feature\/one has 2 commits that main lacks, and lacks 1 commit\./);
    assert.match(text, new RegExp(`since ${base.slice(0, 7)}`));
    assert.match(text, /Write two .*1 file \+1/);
    const alone = await page('/ada/engine/compare/main...feature/one?file=0');
    assert.match(textOf(alone), /All files/);
    assert.ok(links(alone).includes('/ada/engine/compare/main...feature/one'));
    const missing = await browser.get(`/ada/engine/compare/main...${encodeURIComponent(HOSTILE)}x`);
    assert.equal(missing.status, 404);
    assert.match(missing.html, /value="&#60;img\/src&#61;x&#62;&#34;onerror/);
    assert.match(textOf(await page('/ada/engine/compare')), /Name two branches/);
    for (const head of ['--output=/tmp/x', 'main~1', 'main^{}']) {
      const address = `/ada/engine/compare/main...${head.split('/').map(encodeURIComponent).join('/')}`;
      assert.equal((await browser.get(`/ada/engine/compare?head=${encodeURIComponent(head)}`)).location, address);
      assert.equal((await browser.get(address)).status, 404, head);
    }
    for (const [typed, location] of [
      ['base=main&head=feature%2Fone', 'main...feature/one'],
      ['base=x&head=main..feature%2Fone', 'main..feature/one'],
      ['head=main...feature%2Fone', 'main...feature/one'],
    ]) {
      const { location: found } = await browser.get(`/ada/engine/compare?${typed}`);
      assert.equal(found, `/ada/engine/compare/${location}`, typed);
    }
  });

  test('compare both as they are with two dots, and lead from one comparison to the other and back', async () => {
    const [three, two] = ['/ada/engine/compare/main...feature/one', '/ada/engine/compare/main..feature/one'];
    const since = await page(three);
    assert.ok(links(since).includes(two) && links(since).includes('/ada/engine/compare/feature/one...main'));
    const direct = await page(two);
    assert.match(
      textOf(direct),
      /feature\/one has 2 commits that main lacks.*as they are\. .*1 file .*three → two renamed/,
    );
    assert.ok(links(direct).includes(three));
  });

  test('lead from a path to other branches and tags, and to the nearest folder where they lack it', async () => {
    await git(work, ['checkout', '-q', '--detach', base]);
    await commitFile(work, 'a/b/deep', '1\n');
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/deep']);
    await git(work, ['checkout', '-q', '--detach', base]);
    await commitFile(work, 'a/other', '1\n');
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/flat']);
    await git(work, ['checkout', '-q', 'main']);
    const home = '/ada/engine';
    for (const [place, here, other, there, words] of [
      ['blob', 'deep/a/b/deep', 'flat', 'tree/flat/a', /a\/b\/deep is not in flat\./],
      ['tree', 'deep/a/b', 'flat', 'tree/flat/a', /a\/b is not in flat\./],
      ['blame', 'deep/a/b/deep', 'main', 'tree/main', /a\/b\/deep is not in main\./],
      ['commits', 'deep/a/b', 'flat', 'commits/flat', /a\/b is not in flat\./],
      ['blob', 'deep/one', 'flat', 'blob/flat/one', null],
      ['blame', 'deep/one', 'flat', 'blame/flat/one', null],
      ['tree', 'deep/a', 'flat', 'tree/flat/a', null],
      ['commits', 'deep/a', 'flat', 'commits/flat/a', null],
    ] as const) {
      const switches = links(await page(`${home}/${place}/${here}`)).filter((link) => link.includes('/switch?'));
      assert.ok(switches.length > 3, place);
      for (const link of switches) {
        const led = await browser.follow(await browser.get(link));
        assert.equal(led.status, 200, link);
        if (!link.includes(`ref=${other}&`)) continue;
        assert.equal((await browser.get(link)).location, `${home}/${there}`);
        if (words !== null) assert.match(textOf(led), words);
      }
    }
    // What is typed keeps the path too, and so do the names like it.
    const typed = await browser.get(`${home}/switch?ref=fla&page=blob&path=one`);
    assert.equal(typed.location, `${home}/refs?q=fla&page=blob&path=one`);
    const like = links(await browser.follow(typed));
    assert.ok(like.includes(`${home}/switch?ref=flat&page=blob&path=one`), like.join(' '));
    await git(work, ['push', '--quiet', url, ':deep', ':flat']);
  });

  test('suggest branches to compare, and names that are like one that does not exist', async () => {
    const asked = await page('/ada/engine/compare');
    assert.match(textOf(asked), /Branches that changed last .*feature\/one/);
    assert.ok(links(asked).includes('/ada/engine/compare/main...feature/one'));
    assert.match(asked.html, /<option value="feature\/one">/);
    assert.match(asked.html, /<option value="v1\.9">/);
    const missing = await browser.get('/ada/engine/compare/main...feature/on');
    assert.equal(missing.status, 404);
    assert.match(textOf(missing), /There is no branch, tag or commit feature\/on \. Did you mean feature\/one/);
    assert.ok(links(missing).includes('/ada/engine/compare/main...feature/one'));
    const base = await browser.get('/ada/engine/compare/1.9...main');
    assert.ok(links(base).includes('/ada/engine/compare/refs/tags/v1.9...main'), base.html);
  });

  test('lead from a short id to the page of the whole one, with the same path and query', async () => {
    const short = forced.slice(0, 7);
    for (const [address, location] of [
      [`tree/${short}`, `tree/${forced}`],
      [`blob/${short.toUpperCase()}/two?all`, `blob/${forced}/two?all`],
      [`commits/${short}/two`, `commits/${forced}/two`],
      [`commit/${short}`, `commit/${forced}`],
      [`switch?ref=${short}&page=tree`, `tree/${short}`],
    ]) {
      const answer = await browser.get(`/ada/engine/${address}`);
      assert.deepEqual([answer.status, answer.location], [303, `/ada/engine/${location}`], address);
    }
    assert.equal((await browser.get(`/ada/engine/tree/${forced.slice(0, 6)}`)).status, 404);
    assert.equal((await browser.get(`/ada/engine/compare/${base.slice(0, 8)}...${short}`)).status, 200);
  });

  test('lead to each of several commits that begin alike, at the same path', async () => {
    const alike = await createRepository(strata, ada, 'alike');
    const { texts, digits } = alikeCommits(await rev(`${base}^{tree}`));
    const ids: string[] = [];
    for (const [number, text] of texts.entries()) {
      ids.push((await git(work, ['hash-object', '-t', 'commit', '-w', '--stdin'], text)).trim());
      await git(work, ['push', '--quiet', alike, `${ids.at(-1)}:refs/heads/b${number}`]);
    }
    for (const [address, addressOf] of [
      [`tree/${digits}`, (id: string) => `/ada/alike/tree/${id}`],
      [`blob/${digits}/one?all`, (id: string) => `/ada/alike/blob/${id}/one?all`],
      [`commit/${digits}`, (id: string) => `/ada/alike/commit/${id}`],
      [`compare/b0...${digits}`, (id: string) => `/ada/alike/commit/${id}`],
    ] as const) {
      const several = await browser.get(`/ada/alike/${address}`);
      assert.equal(several.status, 422, address);
      assert.match(textOf(several), new RegExp(`Several commits begin with ${digits}`));
      for (const id of ids) {
        assert.ok(links(several).includes(addressOf(id)), `${address}: ${links(several).join(' ')}`);
        assert.equal((await browser.get(addressOf(id))).status, 200, address);
      }
    }
  });

  test('download the files of a ref and of a folder, and what a commit changed, to which the pages lead', async () => {
    const home = await page('/ada/engine');
    assert.ok(links(home).includes('/ada/engine/archive/main.zip'));
    assert.ok(links(await page('/ada/engine/tags')).includes('/ada/engine/archive/v1.10.tar.gz'));
    const zip = await browser.get('/ada/engine/archive/main.zip');
    assert.deepEqual([zip.status, zip.headers['content-type']], [200, 'application/zip']);
    assert.match(zip.headers['content-disposition'] ?? '', /filename="engine-main\.zip"/);
    assert.equal(zip.bytes.subarray(0, 2).toString(), 'PK');
    assert.equal((await browser.get('/ada/engine/archive/nowhere.zip')).status, 404);
    assert.equal((await browser.get('/ada/engine/archive/main.rar')).status, 404);
    assert.equal((await browser.get('/ada/engine/archive/main.zip?path=one')).status, 404);
    const shown = await page(`/ada/engine/commit/${forced}`);
    for (const form of ['diff', 'patch'] as const) {
      assert.ok(links(shown).includes(`/ada/engine/commit/${forced}.${form}`));
      const text = await browser.get(`/ada/engine/commit/${forced}.${form}`);
      assert.equal(text.headers['content-type'], 'text/plain; charset=utf-8');
      assert.equal(text.headers['x-content-type-options'], 'nosniff');
      assert.match(text.html, /^\+3$/m);
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

  test('show a push of many refs as one row, which opens to some and leads to all of them', async () => {
    const many = await createRepository(strata, ada, 'many');
    const tags = Array.from({ length: 60 }, (_, number) => `${base}:refs/tags/t${number}`);
    await git(work, ['push', '--quiet', many, `${base}:refs/heads/main`, ...tags]);
    await git(work, ['push', '--quiet', many, `${forced}:refs/heads/main`, ':refs/tags/t7']);
    const activity = await page('/ada/many/activity');
    assert.match(textOf(activity), /Pushed to 1 branch, deleted 1 tag .*Created 1 branch and 60 tags .*All 61 changes/);
    assert.equal([...activity.html.matchAll(/<li class/g)].length, 2);
    const rows = new Set<string>();
    let next: string | undefined = links(activity).find((link) => link.includes('?push='));
    for (let pages = 0; next !== undefined && pages < 10; pages += 1) {
      const shown: SitePage = await page(next);
      for (const [, name = ''] of shown.html.matchAll(/<bdi>(t\d+|main)<\/bdi>/g)) rows.add(name);
      next = /rel="next" href="([^"]*)"/.exec(shown.html)?.[1]?.replaceAll('&#61;', '=').replaceAll('&#38;', '&');
    }
    assert.equal(rows.size, 61);
    // A commit that no ref reaches any more, and a tag that is gone, are shown as they stood.
    const moments = links(activity).filter((link) => /^\/ada\/many\/(commit|tree)\//.test(link));
    for (const link of new Set(moments)) assert.ok((await browser.get(link)).status < 400, link);
    assert.ok(
      moments.some((link) => /tree\/refs\/tags\/t7\?at=/.test(link)),
      moments.join('\n'),
    );
    assert.equal((await browser.get('/ada/many/activity?push=99')).status, 404);
    assert.match(textOf(await page('/ada/many/activity?before=1')), /Created 1 branch .*Newest/);
    assert.match(textOf(await page('/ada/many/activity?before=0')), /There is nothing before\./);
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
      const shown = await browser.follow(await browser.get(event));
      assert.equal(links(shown).includes('/ada/engine/purge'), leaves, event);
    }
  });

  test('say on a commit which push brought it, by which token, as which event', async () => {
    assert.match(textOf(await page(`/ada/engine/commit/${base}`)), /Pushed .* with the token .*, as event 0 of the/);
    assert.match(textOf(await page(`/ada/engine/commit/${forced}`)), /as event 2 of the/);
  });

  /** The addresses as of each event, oldest first, as the activity names them. */
  const moments = async (): Promise<readonly string[]> => {
    const found = links(await page('/ada/engine/activity')).flatMap(
      (link) => /^\/ada\/engine\?at=(.*)$/.exec(link)?.[1] ?? [],
    );
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
      if (!/\/(raw|archive)\/|\.(diff|patch)\?/.test(address))
        assert.match(textOf(shown), /As of .* with event 2/, address);
      const more = links(shown).filter((link) =>
        /^\/ada\/engine(\/(?!activity|settings|restore|changes)|\?)/.test(link),
      );
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
    assert.doesNotMatch(textOf(await page('/ada/engine')), /Nothing newer is shown/);
  });

  test('have titles of their own, with the order, the search and the moment', async () => {
    const titleOf = async (address: string): Promise<string | undefined> =>
      /<title>(.*) · Strata<\/title>/.exec((await page(`/ada/engine/${address}`)).html)?.[1];
    const [, moment = ''] = await moments();
    assert.equal(await titleOf('branches'), 'Branches · ada/engine');
    assert.equal(await titleOf('branches?q=feature&sort=name'), 'Branches by name with “feature” · ada/engine');
    assert.equal(await titleOf(`tags?at=${moment}`), `Tags · ada/engine · as of ${moment}`);
    assert.equal(await titleOf('compare/main...feature/one?page=1'), 'Compare main...feature/one, page 2 · ada/engine');
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
      ['2020-01-01T00:00:00Z', 'Not created yet'],
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
    assert.equal((await browser.get('/ada/fresh/compare/main...main')).status, 404);
    const [moment = ''] = await moments();
    const past = [`branches?at=${moment}`, `tree/main?at=${moment}`, 'branches?at=never'];
    for (const kind of [
      'branches',
      'tags',
      'activity',
      'compare',
      'compare/main...main',
      'archive/main.zip',
      ...past,
    ]) {
      const theirs = await eve.get(`/ada/engine/${kind}`);
      const nothing = await eve.get(`/ada/nothing/${kind}`);
      assert.deepEqual([theirs.status, nothing.status], [404, 404], kind);
    }
  });

  test('stay below their weight with many commits and many files', async () => {
    await git(work, ['fast-import', '--quiet'], wideHistory());
    await git(work, ['push', '--quiet', url, 'wide']);
    for (const address of ['compare/main...wide', `commit/${await rev('wide~59')}`]) {
      const { bytes, html } = await browser.get(`/ada/engine/${address}`);
      assert.ok(bytes.length < LONG_PAGE_BYTES_MAX, address);
      const files = html.match(/<details class="box file"/g)?.length ?? 0;
      assert.ok(files > 100 && html.includes(`${files} files`), 'each is there');
    }
  });
});
