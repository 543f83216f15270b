/** The pages that show who brought each line of a file. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { LONG_PAGE_BYTES_MAX, LONG_PAGE_ELEMENTS_MAX } from '../../../../apps/website/rendering/weight.ts';
import { suiteEnding } from '../../../support/cleanup.ts';
import type { SiteBrowser, SitePage } from '../../../support/form-browser.ts';
import { signIn } from '../../../support/site-browser.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
} from '../../../support/strata.ts';
import { sharedParts, startNode } from '../../../support/strata-on-postgres.ts';

describe('The page of who brought the lines of a file', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;
  let work: string;
  /** The ids of the pushes, the first one first. */
  const pushes: string[] = [];

  const page = async (address: string): Promise<SitePage> => {
    const shown = await browser.get(`/ada/lines/${address}`);
    assert.equal(shown.status, 200, `${address}: ${shown.html.slice(0, 2_000)}`);
    return shown;
  };
  const textOf = ({ html }: SitePage): string => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');
  const write = async (name: string, lines: readonly string[]): Promise<string> =>
    commitFile(work, name, lines.map((line) => `${line}\n`).join(''));
  const lines = Array.from({ length: 12 }, (_, index) => `line ${index + 1}`);
  /** Every other line of the long file is of another commit. */
  const long = Array.from({ length: 8_000 }, (_, index) => `number ${index + 1}`);

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    const settings = { name: '<second>', scope: 'ALL_REPO', grants: ['ALL'] };
    const second = (await api(strata, ada.token, 'POST', '/v1/access-tokens', settings)).body as { token: string };
    browser = await signIn(strata, ada);
    work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'lines');
    await write('src/old', lines);
    await write('long', long);
    await git(work, ['push', '--quiet', url, 'main']);
    await git(work, ['rm', '--quiet', '--cached', 'src/old']);
    await write('src/new', lines);
    await write('src/new', lines.with(4, '<b>five</b>'));
    await write(
      'long',
      long.map((line, index) => (index % 2 === 0 ? line : `changed ${index + 1}`)),
    );
    await git(work, ['push', '--quiet', gitUrl(strata, { username: 'ada', token: second.token }, 'lines'), 'main']);
    const { activity } = (await api(strata, ada.token, 'GET', '/v1/repos/ada/lines/activity')).body as {
      readonly activity: readonly { readonly id: string }[];
    };
    pushes.push(...activity.map(({ id }) => id).toReversed());
  });

  test('has the push, the token and the commit before each line, whose numbers are links to themselves', async () => {
    const shown = await page('blame/main/src/new');
    const id = (await git(work, ['rev-parse', 'main~1'])).trim();
    const before = (await git(work, ['rev-parse', 'main~2'])).trim();
    const [, row = ''] = shown.html.split('<tr>').filter((part) => part.includes('class="lines"'));
    assert.match(row, new RegExp(`<a class="subject" dir="auto" href="/ada/lines/commit/${id}">Write src/new</a>`));
    assert.match(row, new RegExp(`href="/history/${pushes[1]}"><bdi>&#60;second&#62;</bdi></a>`));
    assert.match(row, new RegExp(`href="/ada/lines/blame/${before}/src/new">Before`));
    assert.match(row, /<a id="L5" href="#L5">5<\/a>&lt;b&gt;five&lt;\/b&gt;\n<\/code>/);
    assert.equal(shown.html.match(/<a id="L\d+"/g)?.length, 12);
    assert.match(shown.html, /<title>Blame of src\/new at main · ada\/lines · Strata<\/title>/);
    assert.match((await page('blob/main/src/new')).html, /href="\/ada\/lines\/blame\/main\/src\/new">Blame<\/a>/);
    const earlier = await page(`blame/${before}/src/new`);
    assert.match(earlier.html, new RegExp(`href="/ada/lines/blame/${before}/src/new">Permalink`));
    assert.doesNotMatch(earlier.html, /five/);
  });

  test('is shown on one page, and in windows what no page holds with its commits', async () => {
    let next: string | null = 'blame/main/long';
    const numbers: number[] = [];
    const titles = new Set<string>();
    while (next !== null) {
      const part: SitePage = await page(next);
      assert.ok(part.bytes.length < LONG_PAGE_BYTES_MAX, `${part.bytes.length} bytes`);
      assert.ok((part.html.match(/<[a-z]/g)?.length ?? 0) < LONG_PAGE_ELEMENTS_MAX);
      numbers.push(...[...part.html.matchAll(/<a id="L(\d+)"/g)].map(([, number]) => Number(number)));
      titles.add(/<title>(.*)<\/title>/.exec(part.html)?.[1] ?? '');
      const [, query] = /rel="next" href="([^"]*)"/.exec(part.html) ?? [];
      next = query === undefined ? null : `blame/main/long${query.replaceAll('&#61;', '=')}`;
    }
    assert.deepEqual(
      numbers,
      long.map((_, index) => index + 1),
    );
    assert.ok(titles.size > 1);
    assert.match((await page('blame/main/long?from=99999999')).html, /<a id="L8000"/);
    assert.match((await page('blame/main/long?from=1500')).html, /<a id="L1500"/);
  });

  test('is shown as of a moment, with links that keep it, and not for what has no lines', async () => {
    const past = await page(`blame/main/src/old?at=${pushes[0]}`);
    assert.match(textOf(past), /line 12/);
    assert.match(past.html, /href="\/ada\/lines\/blob\/main\/src\/old\?at&#61;[^"]+">File/);
    assert.equal((await browser.get('/ada/lines/blame/main/src/old')).status, 404);
    const folder = await browser.get('/ada/lines/blame/main/src');
    assert.deepEqual([folder.status, folder.location], [303, '/ada/lines/tree/main/src']);
    await writeFile(path.join(work, 'binary'), Buffer.from([0, 1, 2]));
    await git(work, ['add', 'binary']);
    await git(work, ['commit', '--quiet', '-m', 'no text']);
    await commitFile(work, 'empty', '');
    await git(work, ['push', '--quiet', gitUrl(strata, ada, 'lines'), 'HEAD:refs/heads/kinds']);
    assert.match(textOf(await page('blame/kinds/binary')), /This file is not text\. See its page/);
    assert.match(textOf(await page('blame/kinds/empty')), /This file is empty/);
  });
});
