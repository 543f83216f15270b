/** Reads a long file and a long diff on the website without scripts: each line and each file is near. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { LONG_PAGE_BYTES_MAX, LONG_PAGE_ELEMENTS_MAX, weighMarkup } from '../../apps/website/rendering/weight.ts';
import { MIB } from '../../core/kernel/byte-units.ts';
import { suiteEnding } from '../support/cleanup.ts';
import type { SiteBrowser } from '../support/form-browser.ts';
import { signIn } from '../support/site-browser.ts';
import { createAccount, createRepository, git, newWorkTree, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

const LINES = 25_000;
const FILES = 1_500;

describe('A reader without scripts', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let browser: SiteBrowser;
  let changed: string;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    const ada = await createAccount(strata, 'ada');
    const url = await createRepository(strata, ada, 'long');
    const work = await newWorkTree(ending);
    await git(work, ['fast-import', '--quiet', '--force'], history());
    changed = (await git(work, ['rev-parse', 'refs/heads/main'])).trim();
    await git(work, ['push', '--quiet', url, 'refs/heads/main']);
    browser = await signIn(strata, ada);
  });

  test('gets the last lines of a file of 1 MiB in one request', async () => {
    const { status, html } = await browser.get('/ada/long/blob/main/long.txt');
    assert.equal(status, 200);
    assert.match(html, /<a id="L24990" href="#L24990">24990<\/a>line 24990 of/);
    assertFits(html);
  });

  test('reaches the lines of each of 1,500 changed files in at most two clicks', async () => {
    const address = `/ada/long/commit/${changed}`;
    const { html } = await browser.get(address);
    assertFits(html);
    const files = html.split('<details class="box file"').slice(1);
    assert.equal(files.length, FILES);
    const folded: string[] = [];
    for (const [number, file] of files.entries()) {
      assert.match(file, new RegExp(`^ id="d${number}"`));
      if (lineOf(number).test(file)) continue;
      const [, link = assert.fail(`file ${number} leads nowhere`)] = /<a data-in-place href="([^"]*)"/.exec(file) ?? [];
      assert.match(file, /It has 2 changed lines/);
      folded.push(link.replaceAll('&#61;', '=').replaceAll('&#38;', '&'));
    }
    for (const link of [folded[0], folded.at(-1)]) {
      if (link === undefined) continue;
      const [, number = ''] = /file=(\d+)/.exec(link) ?? [];
      assert.match((await browser.get(link)).html, lineOf(Number(number)));
    }
  });
});

/** The changed line of a file of the diff, whose first word is marked where the page has room for marks. */
function lineOf(file: number): RegExp {
  return new RegExp(`<div class=added><a id=d${file}R1 [^>]*>1</a>.*now(</span>)? of \\d+</div>`);
}

function assertFits(html: string): void {
  assert.ok(Buffer.byteLength(html) <= LONG_PAGE_BYTES_MAX, `${Buffer.byteLength(html)} bytes`);
  const { elements } = weighMarkup(html);
  assert.ok(elements <= LONG_PAGE_ELEMENTS_MAX, `${elements} elements`);
}

/** A commit with the long file and many short ones, and one that changes each of those, for git fast-import. */
function history(): string {
  const data = (text: string): string => `data ${Buffer.byteLength(text)}\n${text}\n`;
  const file = (path: string, text: string): string => `M 100644 inline ${path}\n${data(text)}`;
  const lines = Array.from({ length: LINES }, (_, n) => `line ${n + 1} of a file`.padEnd(40)).join('\n');
  // The first line has what the others leave.
  const long = `${'x'.repeat(MIB - lines.length - 1)}${lines}\n`;
  const files = (word: string): string =>
    Array.from({ length: FILES }, (_, n) => file(`parts/part-${n}.txt`, `${word} of ${n}\n`)).join('');
  const commit = (number: number, changes: string): string =>
    `commit refs/heads/main\nmark :${number}\ncommitter A <a@example.org> ${1_700_000_000 + number} +0000\n${data('change')}${number === 1 ? '' : 'from :1\n'}${changes}\n`;
  return commit(1, file('long.txt', long) + files('before')) + commit(2, files('now'));
}
