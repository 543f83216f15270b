/**
 * A repository from its first commit to its deletion, in a real browser with the real git: once with every page
 * checked, and once with scripts off. The same for the history that it leaves.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { beforeAll, describe, test } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { signIn, WAYS } from '../support/journey.ts';
import { needs } from '../support/optional-suites.ts';
import { api, commitFile, createAccount, git, gitUrl, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

/** The password of the accounts that `createAccount` makes. */
const PASSWORD = 'correct horse battery';

describe('A repository in a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  let strata: Strata;
  let browser: TestBrowser;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    browser = await startBrowser(ending);
  });

  const press = (page: Page, name: string): Promise<void> => page.getByRole('button', { name }).click();
  const follow = (page: Page, name: string | RegExp): Promise<void> =>
    page
      .getByRole('link', typeof name === 'string' ? { name, exact: true } : { name })
      .first()
      .click();

  async function find(page: Page, label: string, text: string): Promise<void> {
    await page.getByLabel(label).fill(text);
    await press(page, 'Find');
    await page.waitForURL(`**?*q=${text}`);
  }

  for (const { how, suffix, look, check } of WAYS) {
    test(`is made with a README, compared, searched, changed and deleted, ${how}`, async (context) => {
      const ada = await createAccount(strata, `ada-${suffix}`);
      const { page } = await browser.visit(context, strata.url, look);
      await signIn(page, ada.username, '/new', PASSWORD);
      await page.getByLabel('Name', { exact: true }).fill('engine');
      await page.getByText(`/${ada.username}/${look.scripts ? 'engine' : '…'}`).waitFor();
      await page.getByLabel('Description (optional)').fill('It turns');
      await page.getByLabel('Add a README').check();
      await press(page, 'Create repository');
      await page.getByRole('article').getByRole('heading', { name: 'engine' }).waitFor();
      await check(page);

      const work = await tempDir(context);
      await git(work, ['clone', '--quiet', gitUrl(strata, ada, 'engine'), '.']);
      await commitFile(work, 'src/main.c', 'int main(void) {\n  return 0;\n}\n');
      await git(work, ['tag', 'v1.0']);
      await git(work, ['tag', '-a', '-m', 'Teeth', 'v1.1']);
      await git(work, ['switch', '--quiet', '--create', 'topic']);
      await commitFile(work, 'src/gear.c', 'int teeth = 12;\n');
      await git(work, ['push', '--quiet', 'origin', 'main', 'topic', '--tags']);
      await git(work, ['commit', '--quiet', '--amend', '-m', 'Add a gear']);
      await git(work, ['push', '--quiet', '--force', 'origin', 'topic']);

      await page.goto(`/${ada.username}/engine/branches`);
      await check(page);
      await find(page, 'Find a branch', 'top');
      assert.equal(await page.getByRole('row').count(), 2, 'the head and one branch');
      await follow(page, /1 ahead/);
      await page.getByRole('heading', { name: 'Compare' }).waitFor();
      await page.getByRole('link', { name: 'Add a gear' }).waitFor();
      await page.getByText('int teeth = 12;').waitFor();
      await check(page);
      await page.getByLabel('Compare with', { exact: true }).fill('nowhere');
      await press(page, 'Compare');
      await page.getByRole('alert').waitFor();
      assert.equal(await page.getByLabel('Compare with', { exact: true }).inputValue(), 'nowhere');
      await check(page);

      await follow(page, 'Tags');
      await check(page);
      await find(page, 'Find a tag', '1.1');
      await page.getByRole('link', { name: 'v1.1', exact: true }).waitFor();
      assert.equal(await page.getByRole('row').count(), 2, 'the head and one tag');
      await follow(page, 'Activity');
      await page.getByText('force-pushed').waitFor();
      await check(page);
      for (const change of ['Moves back', 'Moves back']) {
        await follow(page, 'Go back to before this');
        await page.getByText(change).waitFor();
        await check(page);
        await press(page, 'Restore');
        await page.getByText('1 ref restored.').waitFor();
      }

      await page
        .getByRole('link', { name: /Browse at this point/ })
        .nth(1)
        .click();
      await page.getByRole('region', { name: 'As of' }).waitFor();
      await check(page);
      await page.getByLabel('Repository').getByRole('link', { name: 'Branches' }).click();
      await page.waitForURL('**/branches?at=*');
      await check(page);
      await find(page, 'Find a branch', 'top');
      await page.getByRole('region', { name: 'As of' }).waitFor();
      await follow(page, 'topic');
      await follow(page, 'src');
      await follow(page, 'gear.c');
      await page.getByText('int teeth = 12;').waitFor();
      await check(page);
      await follow(page, 'Restore to here');
      await page.getByText('All branches and tags are set back').waitFor();
      await check(page);
      await page.goBack();
      await follow(page, 'Back to now');
      assert.equal(await page.getByRole('region', { name: 'As of' }).count(), 0);

      const now = page.url();
      await page.locator('details.moment > summary').click();
      await page.getByRole('button', { name: 'Show', exact: true }).waitFor();
      await check(page);
      await page.getByRole('button', { name: /Choose a push|All pushes/ }).click();
      await page.waitForURL('**/moments?*');
      await check(page);
      await page.locator('.box button[name=moment]').last().click();
      await page.getByRole('region', { name: 'As of' }).waitFor();
      await follow(page, 'What changed since');
      await page.getByRole('heading', { name: 'What changed' }).waitFor();
      await check(page);
      await page.goto(now);
      if (look.scripts) {
        await page.locator('.body summary').first().click();
        await page.keyboard.press('Escape');
        await page.getByLabel('Branch, tag or commit').waitFor({ state: 'hidden' });
        await page.locator('.body summary').first().click();
        await page.locator('footer').click({ position: { x: 2, y: 2 } });
        await page.getByLabel('Branch, tag or commit').waitFor({ state: 'hidden' });
      }
      await page.locator('.body summary').first().click();
      if (look.scripts) {
        await page.getByLabel('Branch, tag or commit').fill('TOP');
        const found = page.locator('.picked');
        await found.getByRole('link', { name: 'main', exact: true }).waitFor({ state: 'detached' });
        await found.getByRole('link', { name: 'topic', exact: true }).waitFor();
      }
      await page.getByLabel('Branch, tag or commit').fill('topic');
      await page.getByLabel('Branch, tag or commit').press('Enter');
      await page.waitForURL('**/tree/topic');
      await follow(page, 'src');
      await page.getByRole('link', { name: 'gear.c', exact: true }).waitFor();
      await check(page);
      await follow(page, 'main.c');
      await page.getByRole('main').getByRole('link', { name: 'History', exact: true }).click();
      await page.getByRole('link', { name: 'Write src/main.c' }).waitFor();
      assert.equal(await page.getByRole('link', { name: 'Add a gear' }).count(), 0, 'it changed another file');
      await check(page);
      await page.goBack();
      await page.getByRole('main').getByRole('link', { name: 'Blame', exact: true }).click();
      const line = page.getByRole('row').filter({ hasText: 'int main(void)' });
      await line.getByRole('link', { name: 'Write src/main.c' }).waitFor();
      await line.getByRole('link', { name: '1', exact: true }).click();
      await page.waitForURL('**/blame/**#L1');
      await check(page);
      await page.getByRole('main').getByRole('link', { name: 'File', exact: true }).click();
      await follow(page, 'Raw');
      await page.getByText('int main(void)').waitFor();

      await page.goto(`/${ada.username}/engine/settings`);
      await page.getByLabel('Description').fill('It turns faster');
      await page.getByLabel('Default branch').fill('no..branch');
      await press(page, 'Save');
      await page.getByRole('alert').waitFor();
      assert.ok((await page.evaluate('document.activeElement.id')) === 'errors');
      assert.equal(await page.getByLabel('Description').inputValue(), 'It turns faster');
      await check(page);
      await page.getByLabel('Default branch').fill('topic');
      await press(page, 'Save');
      await page.getByText('The settings are saved.').waitFor();
      await follow(page, 'Code');
      await page.getByText('It turns faster').waitFor();
      await page.getByRole('link', { name: 'Add a gear' }).first().waitFor();

      await follow(page, 'Settings');
      await page.getByLabel('Type engine to confirm').fill('motor');
      await press(page, 'Delete repository');
      await page.getByRole('alert').waitFor();
      await check(page);
      await page.getByLabel('Type engine to confirm').fill('engine');
      await press(page, 'Delete repository');
      await page.getByText('The repository engine is deleted.').waitFor();
      await check(page);
      await page.goto(`/${ada.username}/engine`);
      await page.getByRole('heading', { name: 'Page not found' }).waitFor();
      await check(page);

      await page.goto('/new');
      await page.getByLabel('Name', { exact: true }).fill('engine');
      await press(page, 'Create repository');
      await press(page, 'Add a README');
      await page.getByRole('article').getByRole('heading', { name: 'engine' }).waitFor();

      await page.goto(`/${ada.username}`);
      await follow(page, 'Deleted repositories');
      await check(page);
      await press(page, 'Undelete');
      await page.getByRole('alert').first().waitFor();
      await check(page);
      await page.getByLabel('Another name').fill('engine-2');
      await press(page, 'Undelete under this name');
      await page.getByText('The repository is back.').waitFor();
      await page.getByText('It turns faster').waitFor();
      await follow(page, 'Settings');
      await follow(page, 'Purge…');
      await check(page);
      await page.getByLabel('Type engine-2 to confirm').fill('engine-2');
      await press(page, 'Purge for good');
      await page.getByText(/^Purged: .* leave storage/).waitFor();
    });

    test(`leaves a history that its owner filters, checks and exports, ${how}`, async (context) => {
      const bob = await createAccount(strata, `bob-${suffix}`);
      const work = await tempDir(context);
      const created = await api(strata, bob.token, 'POST', '/v1/repositories', { name: 'engine' });
      assert.equal(created.status, 201);
      await git(work, ['clone', '--quiet', gitUrl(strata, bob, 'engine'), '.']);
      await commitFile(work, 'main.c', 'int main(void) {}\n');
      await git(work, ['push', '--quiet', 'origin', 'HEAD:refs/heads/main']);
      const { page } = await browser.visit(context, strata.url, look);
      await signIn(page, bob.username, '/history', PASSWORD);
      await page.getByText('not signed yet').waitFor();
      await check(page);
      await press(page, 'Sign a checkpoint now');
      await page.getByText('consistent').waitFor();
      await check(page);

      await page.getByLabel('Repository', { exact: true }).fill('nowhere');
      await press(page, 'Filter');
      await page.getByRole('alert').or(page.getByText('You have no repository of this name')).first().waitFor();
      await check(page);
      await page.getByLabel('Repository', { exact: true }).fill('engine');
      await page.getByLabel('What').selectOption('RefsUpdated');
      await page.getByLabel('From (UTC)').fill('2020-01-01T00:00');
      await press(page, 'Filter');
      await page.getByRole('listitem').filter({ hasText: 'Pushed to main of engine' }).waitFor();
      assert.equal(await page.getByRole('link', { name: /^Event #/ }).count(), 1);
      await check(page);
      await follow(page, /^Event #/);
      await page.getByText('This tree is the one of the last signed checkpoint.').waitFor();
      await check(page);
      await follow(page, 'History');
      const download = page.waitForEvent('download');
      await press(page, 'Export the log');
      const lines = (await readFile(await (await download).path(), 'utf8')).trimEnd().split('\n');
      assert.match(lines.at(-1) ?? '', /^\{"checkpoint":/);

      await page.goto('/usage');
      await follow(page, 'Ledger');
      await page.getByRole('cell', { name: 'engine' }).first().waitFor();
      await check(page);
      await follow(page, 'scenario');
      await page.getByRole('heading', { name: 'What scenario did' }).waitFor();
      await page.getByRole('heading', { name: 'What was done with it' }).waitFor();
      await check(page);
    });
  }
});
