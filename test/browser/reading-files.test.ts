/**
 * Reading files and diffs in a real browser: the line that a link names, with scripts and without, and what they add.
 */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { beforeAll, describe, test } from 'vitest';
import { assertAccessible, startBrowser, type TestBrowser } from '../support/browser.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { signIn, WAYS } from '../support/journey.ts';
import { needs } from '../support/optional-suites.ts';
import { eventually } from '../support/processes.ts';
import {
  type Account,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

/** The password of the accounts that `createAccount` makes. */
const PASSWORD = 'correct horse battery';
/** A file of about 1 MiB. */
const LINES = 25_000;

/** A second of silence, of 8,000 samples of one byte. */
function silence(): Buffer {
  const [head, samples] = [Buffer.alloc(44), Buffer.alloc(8_000, 128)];
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + samples.length, 4);
  head.write('WAVEfmt ', 8);
  for (const [at, number] of [16, 1 + (1 << 16), 8_000, 8_000, 1 + (8 << 16)].entries()) {
    head.writeUInt32LE(number, 16 + 4 * at);
  }
  head.write('data', 36);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

describe('A reader in a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  let strata: Strata;
  let browser: TestBrowser;
  let ada: Account;
  let home: string;
  let tip: string;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    browser = await startBrowser(ending);
    ada = await createAccount(strata, 'ada');
    const url = await createRepository(strata, ada, 'texts');
    home = `/${ada.username}/texts`;
    const work = await newWorkTree(ending);
    const text = Array.from({ length: LINES }, (_, n) => `This is line ${n + 1} of the whole file`).join('\n');
    await commitFile(work, 'long.txt', text);
    await commitFile(work, 'newlines', '\n'.repeat(100_000));
    await commitFile(work, 'values.csv', 'name,count\none,1\n');
    await commitFile(work, 'guide.md', '> [!NOTE]\n> Mind[^1] this.\n\n- [x] done\n\n[^1]: A note.\n\n# Usage\n');
    await commitFile(work, 'code.js', 'const a = 1;\n\n\n\n\n\n\n\nconst b = 2;\n');
    await commitFile(work, 'code.js', 'const a = 1;\n\n\n\n\n\n\n\nconst b = 3;\n');
    tip = (await git(work, ['rev-parse', 'HEAD'])).trim();
    const sound = (await git(work, ['hash-object', '-w', '--stdin'], silence())).trim();
    await git(work, ['update-index', '--add', '--cacheinfo', `100644,${sound},silence.wav`]);
    await git(work, ['commit', '--quiet', '-m', 'Add a sound']);
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/sounds']);
    await git(work, ['reset', '--quiet', '--soft', tip]);
    await git(work, ['push', '--quiet', url, 'main']);
  });

  /** How far below the top of the window an element is; it must be in it. */
  async function topOf(page: Page, selector: string): Promise<number> {
    const box = await page.locator(selector).boundingBox();
    assert.ok(box !== null && box.y > 0 && box.y < 900, `${selector} is at ${box?.y}`);
    return box.y;
  }

  for (const { how, look, check } of WAYS) {
    test(`is shown the line of the address, marked and with room above, ${how}`, async (context) => {
      const { page } = await browser.visit(context, strata.url, look);
      await signIn(page, ada.username, home, PASSWORD);
      await page.goto(`${home}/blob/main/long.txt#L24990`);
      assert.ok((await topOf(page, '#L24990')) > 100, 'with room above');
      const colour = (selector: string) => page.locator(selector).evaluate((line) => getComputedStyle(line).fontWeight);
      assert.deepEqual([await colour('#L24990'), await colour('#L24989')], ['600', '400']);

      await page.goto(`${home}/blob/main/newlines`);
      await page.getByLabel('From line').fill('99990');
      await page.getByRole('button', { name: 'Go', exact: true }).click();
      await page.locator('#L99990').waitFor();
      for (const name of ['values.csv', 'guide.md', 'code.js']) {
        await page.goto(`${home}/blob/main/${name}`);
        await check(page);
      }

      await page.goto(`${home}/commit/${tip}`);
      await page.getByText('const b = 3').waitFor();
      await check(page);
      await page.getByRole('link', { name: 'More context' }).click();
      await page.locator('#d0R1').waitFor();
      await page.getByRole('link', { name: 'Side by side' }).click();
      await page.waitForURL('**view=split*');
      await check(page);
      await page.getByRole('link', { name: 'View file before' }).click();
      await page.getByText('const b = 2').waitFor();
    });
  }

  test('plays a sound in the sandbox of its bytes', async (context) => {
    const { page } = await browser.visit(context, strata.url, { scripts: true });
    await signIn(page, ada.username, home, PASSWORD);
    await page.goto(`${home}/blob/sounds/silence.wav`);
    await page.getByRole('link', { name: 'Play it' }).click();
    await page.waitForURL('**/raw/sounds/silence.wav');
    const player = page.locator('video');
    await eventually('the player has the sound', () =>
      player.evaluate((video) => 'duration' in video && video.duration === 1),
    );
  });

  test('marks ranges by a click and a click with the shift key, and keeps them with the key y', async (context) => {
    const { page } = await browser.visit(context, strata.url, { scripts: true });
    await signIn(page, ada.username, home, PASSWORD);
    await page.goto(`${home}/blob/main/code.js`);
    await page.locator('#L2').click();
    await page.locator('#L4').click({ modifiers: ['Shift'] });
    assert.equal(new URL(page.url()).hash, '#L2-L4');
    assert.equal(await page.locator('.lines .marked').count(), 3);
    await page.keyboard.press('y');
    assert.equal(new URL(page.url()).pathname, `${home}/blob/${tip}/code.js`);
    assert.equal(new URL(page.url()).hash, '#L2-L4');
    await assertAccessible(page);
    await page.goto(`${home}/blob/main/long.txt#L20000-L20002`);
    await topOf(page, '#L20000');
    assert.equal(await page.locator('.lines .marked').count(), 3);
    await page.goto(`${home}/blob/main/newlines#L99990`);
    await page.waitForURL('**from=99990#L99990');
    await page.locator('#L99990.marked').waitFor();
  });

  test('opens a folded file of a diff in its place, also for a line that a link names', async (context) => {
    const { page } = await browser.visit(context, strata.url, { scripts: true });
    await signIn(page, ada.username, home, PASSWORD);
    await page.goto(`${home}/commits/main/newlines`);
    await page.getByRole('link', { name: 'Write newlines' }).click();
    const file = page.locator('#d0');
    await file.locator('summary').click();
    await page.locator('#d0R1').waitFor();
    const address = page.url();
    assert.ok(!address.includes('file='), 'the page is the same');
    await page.goto(`${address}#d0R40`);
    await page.reload();
    await topOf(page, '#d0R40');
  });
});
