/** Files in other encodings than UTF-8, on the pages that show texts; REST keeps their bytes. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../../../support/cleanup.ts';
import type { SiteBrowser } from '../../../support/form-browser.ts';
import { signIn } from '../../../support/site-browser.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../../../support/strata.ts';
import { sharedParts, startNode } from '../../../support/strata-on-postgres.ts';

describe('A file in another encoding', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;
  let tip: string;
  const FILES = {
    'README.md': Buffer.from('# Gr\xfc\xdfe\n\nEin Text.\n', 'latin1'),
    'latin1.txt': Buffer.from('Gr\xfc\xdfe aus K\xf6ln\n', 'latin1'),
    'utf16.txt': Buffer.from('\ufeffПривет\n', 'utf16le'),
    'koi8.txt': Buffer.from('\xf0\xd2\xc9\xd7\xc5\xd4\n', 'latin1'),
  };

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    browser = await signIn(strata, ada);
    const work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'old');
    for (const [name, bytes] of Object.entries(FILES)) await writeFile(path.join(work, name), bytes);
    await git(work, ['add', '.']);
    await commitFile(work, 'plain', 'plain\n');
    tip = (await git(work, ['rev-parse', 'HEAD'])).trim();
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/main']);
  });

  const page = async (address: string): Promise<string> => (await browser.get(`/ada/old${address}`)).html;

  test('is shown as text, with the name of the encoding; by its mark or by a guess that is called one', async () => {
    const latin1 = await page('/blob/main/latin1.txt');
    assert.ok(latin1.includes('Grüße aus Köln') && latin1.includes('not UTF-8, shown as Windows-1252 by a guess'));
    const utf16 = await page('/blob/main/utf16.txt');
    assert.ok(utf16.includes('Привет') && utf16.includes('UTF-16LE') && !utf16.includes('guess'));
    assert.ok((await page('/blob/main/koi8.txt')).includes('This file is not text'));
    const plain = await page('/blob/main/plain');
    assert.ok(!plain.includes('guess') && !plain.includes('UTF-'));
  });

  test('is shown below its folder as a README, and in the diff of a commit', async () => {
    const home = await page('');
    assert.ok(home.includes('Grüße') && home.includes('by a guess'));
    const commit = await page(`/commit/${tip}`);
    assert.ok(commit.includes('Grüße aus Köln'));
    assert.ok(commit.includes('Lines that are not UTF-8 are shown as Windows-1252, by a guess.'));
  });

  test('keeps its bytes over REST', async () => {
    for (const [name, bytes] of Object.entries(FILES)) {
      const { text } = await api(strata, ada.token, 'GET', `/v1/repos/ada/old/contents/${name}`);
      const body = JSON.parse(text);
      assert.deepEqual([body.encoding, body.content], ['base64', bytes.toString('base64')], name);
    }
  });
});
