/** Finding a file, a line and a commit in a real browser: by the keyboard alone, and with scripts off. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { beforeAll, describe, test } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { signIn, WAYS } from '../support/journey.ts';
import { needs } from '../support/optional-suites.ts';
import { commitFile, createAccount, createRepository, git, newWorkTree, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

/** The password of the accounts that `createAccount` makes. */
const PASSWORD = 'correct horse battery';

describe('Searching in a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  let strata: Strata;
  let browser: TestBrowser;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    browser = await startBrowser(ending);
  });

  async function push(username: string): Promise<void> {
    const ada = await createAccount(strata, username);
    const url = await createRepository(strata, ada, 'engine');
    const work = await newWorkTree(ending);
    await commitFile(work, 'src/gear.c', 'int teeth = 12;\n');
    await commitFile(work, 'src/gearbox.c', 'int gears = 3;\n');
    for (let number = 0; number < 60; number += 1) await commitFile(work, `parts/part-${number}.txt`, 'a part\n');
    await git(work, ['push', '--quiet', url, 'main']);
  }

  const field = (page: Page) => page.getByLabel('Part of the path');
  const shownFiles = (page: Page) => page.locator('#found ol a');

  for (const { how, suffix, look, check } of WAYS) {
    test(`finds files, lines and commits, ${how}`, async (context) => {
      const username = `finder-${suffix}`;
      await push(username);
      const { page } = await browser.visit(context, strata.url, look);
      const home = `/${username}/engine`;
      await signIn(page, username, home, PASSWORD);
      await page.getByRole('link', { name: 'Go to file' }).click();
      await page.getByRole('heading', { name: 'Go to file' }).waitFor();
      await check(page);
      if (look.scripts === false) {
        await field(page).fill('gear');
        await page.getByRole('button', { name: 'Find' }).click();
        await page.waitForURL('**/files?*q=gear');
        assert.deepEqual(await shownFiles(page).allTextContents(), ['src/gear.c', 'src/gearbox.c']);
        await shownFiles(page).first().click();
      } else {
        // What was typed first is not shown over what was typed later.
        await field(page).pressSequentially('part-1');
        await page.getByText('11 files with “part-1”').waitFor();
        assert.match(page.url(), /q=part-1$/);
        await field(page).fill('nothing like this');
        await page.getByText('Nothing matches').waitFor();
        await field(page).fill('GEAR');
        await page.getByText('2 files with “GEAR”').waitFor();
        await check(page);
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('ArrowDown');
        assert.equal(await page.evaluate('document.activeElement.textContent'), 'src/gearbox.c');
        await page.keyboard.press('ArrowUp');
        await page.keyboard.press('ArrowUp');
        // Enter before the list has followed.
        await field(page).fill('gear.c');
        await field(page).press('Enter');
      }
      await page.waitForURL('**/blob/main/src/gear.c');
      if (look.scripts !== false) {
        await page.keyboard.press('t');
        await page.waitForURL('**/files?ref=main');
        await page.keyboard.press('t');
        assert.equal(await field(page).inputValue(), 't', 'the field has the focus, and t is a letter there');
      }

      await page.getByLabel('Repository').getByRole('link', { name: 'Search' }).click();
      await page.getByLabel('Text in the files').fill('teeth =');
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      await page.getByText('1 match at').waitFor();
      await check(page);
      await page.locator('.found .lines a').first().click();
      await page.waitForURL('**/blob/main/src/gear.c#L1');
      await page.goBack();
      await page.getByLabel('Text in the files').fill('(teeth');
      await page.getByLabel('Regular expression').check();
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      await page.getByRole('alert').waitFor();
      assert.equal(await page.getByLabel('Text in the files').inputValue(), '(teeth');
      await check(page);

      await page.getByLabel('Repository').getByRole('link', { name: 'Commits' }).click();
      await page.getByText('Search commits').click();
      await page.getByLabel('In the message').fill('gearbox');
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      await page.getByRole('link', { name: 'Write src/gearbox.c' }).waitFor();
      assert.equal(await page.getByRole('link', { name: 'Write src/gear.c' }).count(), 0);
      await check(page);
    });
  }
});
