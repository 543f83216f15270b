/** Finding files, lines and commits on the pages of a repository that real git pushed, in a browser without scripts. */
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

const HOSTILE = '<img/src=x>"onerror=alert(1)';

describe('The pages that search a repository', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;
  let work: string;
  let first: string;
  let then: string;

  const page = async (address: string, status = 200): Promise<SitePage> => {
    const shown = await browser.get(address);
    assert.equal(shown.status, status, `${address}: ${shown.html.slice(0, 2_000)}`);
    assert.ok(shown.bytes.length < PAGE_BYTES_MAX, `${address} has ${shown.bytes.length} bytes`);
    assert.ok(!shown.html.includes('<img/src'), address);
    return shown;
  };
  const textOf = ({ html }: SitePage): string => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');
  const links = ({ html }: SitePage): string[] =>
    [...html.matchAll(/href="([^"]*)"/g)].map(([, link = '']) =>
      link.replaceAll('&#61;', '=').replaceAll('&#38;', '&').replaceAll('&amp;', '&'),
    );
  const filesOf = ({ html }: SitePage): string[] =>
    [...html.matchAll(/<li><bdi>(.*?)<\/bdi>/g)].map(([, file = '']) => file.replaceAll(/<[^>]*>/g, ''));

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    browser = await signIn(strata, ada);
    work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'engine');
    await commitFile(work, 'src/main.c', 'int main(void) {\n  return 0;\n}\n');
    first = await commitFile(work, 'manual/main.md', '# Main\n\nThe main text\n');
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/main']);
    then = new Date().toISOString();
    await commitFile(work, HOSTILE, `a ${HOSTILE} line\n`);
    await commitFile(work, 'long.txt', `${'\n'.repeat(99)}needle\n${'"'.repeat(5_000)}\n`);
    await commitFile(work, 'many', `${'"needle"'.repeat(50)}\n`.repeat(300));
    await commitFile(work, 'values.csv', 'one,two\nthree,four\n');
    await git(work, ['tag', 'v1']);
    await git(work, ['push', '--quiet', url, 'main', 'v1']);
  });

  test('lead from each page of the repository to its files and to the search', async () => {
    for (const [address, ref] of [
      ['/ada/engine', 'main'],
      ['/ada/engine/tree/v1', 'v1'],
      ['/ada/engine/blob/v1/src/main.c', 'v1'],
      ['/ada/engine/commits/v1', 'v1'],
      ['/ada/engine/branches', 'main'],
      [`/ada/engine/tree/${first}`, first],
    ] as const) {
      const shown = await page(address);
      assert.match(
        shown.html,
        new RegExp(`<nav class="tabs"[^>]*data-files="/ada/engine/files\\?ref&#61;${ref}"`),
        address,
      );
      assert.ok(links(shown).includes(`/ada/engine/search?ref=${ref}`), address);
    }
    assert.ok(links(await page('/ada/engine')).includes('/ada/engine/files?ref=main'));
  });

  test('find files by a part of their path, the best first', async () => {
    const found = await page('/ada/engine/files?ref=main&q=MAIN');
    assert.deepEqual(filesOf(found), ['src/main.c', 'manual/main.md']);
    assert.ok(links(found).includes('/ada/engine/blob/main/src/main.c'));
    assert.match(textOf(found), /2 files with “MAIN” in main/);
    assert.match(found.html, /<mark>main<\/mark>\.c/);
    assert.match(textOf(await page('/ada/engine/files?q=none')), /Nothing matches “none” Show all files/);
    const odd = await page(`/ada/engine/files?q=${encodeURIComponent('<img')}`);
    assert.equal(filesOf(odd).length, 1);
    const [target = ''] = links(odd).filter((link) => link.startsWith('/ada/engine/blob/'));
    assert.match(textOf(await page(target)), /line/);
    await page('/ada/engine/files?ref=nowhere', 404);
    await page('/ada/engine/files?q=%00');
  });

  test('find lines, each with those around it and a link to it', async () => {
    const found = await page('/ada/engine/search?ref=v1&q=main');
    assert.match(textOf(found), /2 matches at v1 \. \d+ files were searched/);
    assert.match(found.html, /<title>“main” in v1 · ada\/engine · Strata<\/title>/);
    assert.ok(links(found).includes('/ada/engine/blob/v1/src/main.c#L1'));
    assert.ok(links(found).includes('/ada/engine/blob/v1/manual/main.md?view=source#L3'));
    assert.match(found.html, /int <mark>main<\/mark>\(void\) \{/);
    assert.match(found.html, / {2}return 0;/);
    const needle = await page('/ada/engine/search?q=needle&path=long.txt');
    assert.ok(links(needle).includes('/ada/engine/blob/main/long.txt?from=80#L100'), links(needle).join());
    assert.match(needle.html, /<title>“needle” in long\.txt at main · ada\/engine · Strata<\/title>/);
    const table = await page('/ada/engine/search?q=three');
    assert.ok(links(table).includes('/ada/engine/blob/main/values.csv?view=source#L2'), links(table).join());
    const odd = await page(`/ada/engine/search?q=${encodeURIComponent(HOSTILE)}`);
    assert.match(odd.html, /value="&#60;img\/src&#61;x/);
    assert.match(textOf(odd), /1 match at/);
    assert.match(
      textOf(await page('/ada/engine/search?q=none')),
      /0 matches at main \. \d+ files were searched; the case of letters counts/,
    );
    await page('/ada/engine/search');
    for (const text of ['%00', '%00&regex=yes', '%0A', '%FF', '-e', '--all'])
      await page(`/ada/engine/search?q=${text}`);
  });

  test('show fewer lines on a page where they are heavy, and all of them on all pages', async () => {
    let address: string | undefined = '/ada/engine/search?q=needle&path=many';
    const numbers = new Set<string>();
    for (let pages = 0; address !== undefined && pages < 400; pages += 1) {
      const shown: SitePage = await page(address);
      for (const [, number = ''] of shown.html.matchAll(/#L(\d+)"/g)) numbers.add(number);
      address = links(shown).find(
        (link) => shown.html.includes('rel="next"') && /page=(\d+)/.exec(link)?.[1] === String(pages + 1),
      );
    }
    assert.equal(numbers.size, 300);
  });

  test('say beside the field what is wrong, and keep what was written', async () => {
    const regex = await page('/ada/engine/search?q=(main&regex=yes', 422);
    assert.match(textOf(regex), /Not an expression of PCRE: missing closing parenthesis/);
    assert.match(regex.html, /id="q"[^>]*value="\(main"[^>]*aria-invalid="true"/);
    assert.match(regex.html, /name="regex" value="yes" checked/);
    const path = await page('/ada/engine/search?q=main&path=src*', 404);
    assert.match(path.html, /id="path"[^>]*value="src\*"[^>]*aria-invalid="true"/);
    assert.match(
      textOf(await page('/ada/engine/search?q=m.in&regex=yes&path=src/')),
      /1 match at main \. 1 file was searched/,
    );
  });

  test('find commits by author, message and time, and keep the search on further pages', async () => {
    const found = await page('/ada/engine/commits/main?text=WRITE+src&author=');
    assert.match(textOf(found), /Write src\/main\.c/);
    assert.doesNotMatch(textOf(found), /Write manual/);
    assert.match(found.html, /<details class="box" open>/);
    assert.match(textOf(await page('/ada/engine/commits/main?author=nobody')), /No commit matches Show all commits/);
    assert.match(textOf(await page('/ada/engine/commits/main/src?text=write')), /Write src\/main\.c/);
    const wrong = await page('/ada/engine/commits/main?since=yesterday', 422);
    assert.match(wrong.html, /id="since"[^>]*value="yesterday"[^>]*aria-invalid="true"/);
    assert.match(textOf(await page(`/ada/engine/commits/main?text=${encodeURIComponent(HOSTILE)}`)), /Write/);
  });

  test('show a moment of the past, and stay there', async () => {
    const at = `at=${encodeURIComponent(then)}`;
    const files = await page(`/ada/engine/files?${at}`);
    assert.ok(!filesOf(files).includes('many'));
    assert.ok(links(files).some((link) => link.startsWith('/ada/engine/blob/main/src/main.c?at=')));
    assert.match(files.html, /<input type="hidden" name="at"/);
    assert.match(textOf(await page(`/ada/engine/search?q=needle&${at}`)), /0 matches/);
    const lines = await page(`/ada/engine/search?q=main&${at}`);
    assert.ok(links(lines).some((link) => /^\/ada\/engine\/blob\/main\/src\/main\.c\?at=[^#]*#L1$/.test(link)));
    assert.doesNotMatch(textOf(await page(`/ada/engine/commits/main?text=write&${at}`)), /Write many/);
  });

  test('lead nowhere else in a repository without commits', async () => {
    await createRepository(strata, ada, 'empty');
    const shown = await page('/ada/empty/search');
    assert.ok(!links(shown).some((link) => /\/(files|commits\/)/.test(link)), links(shown).join());
    await page('/ada/empty/search?q=main', 404);
    await page('/ada/empty/files', 404);
  });

  test('are not there for somebody else', async () => {
    const bob = await signIn(strata, await createAccount(strata, 'bob'));
    for (const address of ['files', 'files?q=main', 'search', 'search?q=main']) {
      assert.equal((await bob.get(`/ada/engine/${address}`)).status, 404, address);
    }
  });
});
