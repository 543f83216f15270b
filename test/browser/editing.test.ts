/**
 * Writing files, branches and tags in a real browser, whose text fields send line ends of their own: once with scripts
 * and once without.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { assertAccessible, LOOKS, startBrowser, type TestBrowser } from '../support/browser.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { signIn, WAYS } from '../support/journey.ts';
import { needs } from '../support/optional-suites.ts';
import { createAccount, createRepository, git, newWorkTree, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

/** The password of the accounts that `createAccount` makes. */
const PASSWORD = 'correct horse battery';

describe('A file in a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  let strata: Strata;
  let browser: TestBrowser;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    browser = await startBrowser(ending);
  });

  for (const { how, suffix, look, check } of WAYS) {
    test(`that is edited keeps the bytes that nobody edited, and shows what somebody else made of it, ${how}`, async (context) => {
      const ada = await createAccount(strata, `ada-${suffix}`);
      const url = await createRepository(strata, ada, 'texts');
      const work = await newWorkTree(context);
      const files = { lf: '\n\none\n', crlf: 'one\r\n\r\ntwo\r\n', unended: 'a\n\tb', mark: '\ufeffa\u00a0\f\n' };
      for (const [name, text] of Object.entries(files)) await writeFile(path.join(work, name), text);
      const push = async (): Promise<void> => {
        await git(work, ['add', '.']);
        await git(work, ['commit', '--quiet', '--message', 'A change']);
        await git(work, ['push', '--quiet', '--force', url, 'HEAD:refs/heads/main']);
      };
      await push();
      const { page } = await browser.visit(context, strata.url, look);
      const home = `/${ada.username}/texts`;
      await signIn(page, ada.username, `${home}/blob/main/lf`, PASSWORD);
      const type = async (text: string): Promise<void> => {
        await page.getByLabel('Text', { exact: true }).focus();
        await page.keyboard.press('Control+End');
        await page.keyboard.type(text);
      };
      const save = (): Promise<void> => page.getByRole('button', { name: 'Save', exact: true }).click();
      for (const [name, text] of Object.entries(files)) {
        await page.goto(`${home}/blob/main/${name}`);
        await page.getByRole('link', { name: 'Edit', exact: true }).click();
        await page.getByRole('heading', { name: `Edit ${name}` }).waitFor();
        await page.getByRole('tablist').waitFor({ state: look.scripts === true ? 'visible' : 'detached' });
        if (name === 'lf') await check(page);
        await type('x\ny');
        await save();
        await page.getByText(`${name} is saved in commit`).waitFor();
        await git(work, ['fetch', '--quiet', url, 'main']);
        const end = name === 'crlf' ? '\r\n' : '\n';
        assert.equal(await git(work, ['show', `FETCH_HEAD:${name}`]), `${text}x${end}y`, name);
      }
      await check(page);

      await page.goto(`${home}/edit/main/lf`);
      await writeFile(path.join(work, 'lf'), 'theirs\n');
      await push();
      await type('mine');
      await save();
      await page.getByRole('alert').waitFor();
      assert.equal(await page.getByLabel('Their text').inputValue(), 'theirs\n');
      assert.equal(await page.getByLabel('Text', { exact: true }).inputValue(), '\n\none\nx\nymine');
      await check(page);
      await page.getByLabel('On a new branch').check();
      await page.getByLabel('Name of the new branch').fill('mine');
      await page.getByRole('button', { name: 'Save on top' }).click();
      await page.getByText('lf is saved in commit').waitFor();
      await page.getByRole('link', { name: 'Undo' }).click();
      await page.getByText('Only refs/heads/mine is set back').waitFor();
      await check(page);
      await page.getByRole('button', { name: 'Restore' }).click();
      await page.getByText('1 ref restored').waitFor();
      await page.goto(`${home}/branches`);
      assert.equal(await page.getByRole('row').count(), 2, 'the head and one branch');
    });

    test(`is created, uploaded, moved and deleted, and so are branches and tags, ${how}`, async (context) => {
      const ada = await createAccount(strata, `ida-${suffix}`);
      const url = await createRepository(strata, ada, 'begun');
      const work = await newWorkTree(context);
      const { page } = await browser.visit(context, strata.url, look);
      const home = `/${ada.username}/begun`;
      const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
      const follow = (name: string): Promise<void> => page.getByRole('link', { name, exact: true }).first().click();
      await signIn(page, ada.username, home, PASSWORD);
      await check(page);
      await follow('Create a file');
      await page.getByLabel('Path').fill('notes/first.md');
      await page.getByLabel('Text', { exact: true }).fill('# First\n');
      await check(page);
      await press('Create file');
      await page.getByText('first.md is created in commit').waitFor();
      await page.goto(home);
      await check(page);
      await follow('notes');
      await follow('Upload');
      const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, at) => at % 253));
      const names = ['a "quoted" name', 'Grüße.bin'];
      const files = names.map((name) => ({ name, mimeType: 'application/octet-stream', buffer: bytes }));
      await page.getByLabel('Files', { exact: true }).setInputFiles(files);
      await check(page);
      await press('Upload');
      await page.getByText('2 files uploaded in commit').waitFor();
      await git(work, ['fetch', '--quiet', url, 'HEAD']);
      const id = (await git(work, ['hash-object', '--stdin'], bytes)).trim();
      for (const name of names) assert.equal((await git(work, ['rev-parse', `FETCH_HEAD:notes/${name}`])).trim(), id);
      await follow('first.md');
      await follow('Move');
      await page.getByLabel('New path').fill('README.md');
      await check(page);
      await press('Move');
      await page.getByText('first.md is moved in commit').waitFor();
      await follow('Delete');
      await check(page);
      await press('Delete');
      await page.getByText('README.md is deleted in commit').waitFor();

      await follow('Branches');
      await follow('New branch');
      await page.getByLabel('Name', { exact: true }).fill('topic');
      await check(page);
      await press('Create branch');
      await page.getByText('The branch topic is created.').waitFor();
      await check(page);
      await follow('Delete topic');
      await check(page);
      await press('Delete branch');
      await page.getByText('The branch topic is deleted.').waitFor();
      await follow('Undo');
      await press('Restore');
      await page.getByText('1 ref restored').waitFor();
      await follow('Tags');
      await follow('New tag');
      await page.getByLabel('Name', { exact: true }).fill('v1');
      await page.getByLabel('Message (optional)').fill('One');
      await check(page);
      await press('Create tag');
      await page.getByText('The tag v1 is created.').waitFor();
      await check(page);
    });
  }

  test('has numbered lines and previews in tabs, by keyboard, and is saved from one', async (context) => {
    const ada = await createAccount(strata, 'eda');
    const url = await createRepository(strata, ada, 'previewed');
    const work = await newWorkTree(context);
    await writeFile(path.join(work, 'notes.md'), `# Notes\n${'a line\n'.repeat(99)}`);
    await git(work, ['add', '.']);
    await git(work, ['commit', '--quiet', '--message', 'Notes']);
    await git(work, ['push', '--quiet', url, 'HEAD:refs/heads/main']);
    const { page } = await browser.visit(context, strata.url, { ...LOOKS[0], scripts: true });
    const home = `/${ada.username}/previewed`;
    await signIn(page, ada.username, `${home}/edit/main/notes.md`, PASSWORD);
    const numbers = page.locator('.numbers');
    await numbers.getByText('1 2 3').waitFor();
    await page.getByLabel('Text', { exact: true }).focus();
    await page.keyboard.press('Control+End');
    await page.locator('.numbers', { hasText: '101' }).waitFor();
    await page.keyboard.type('More\n');
    await page.locator('.numbers', { hasText: '102' }).waitFor();
    assert.doesNotMatch((await numbers.textContent()) ?? '', /103|^1\n/);

    const focused = (): Promise<unknown> => page.evaluate('document.activeElement.id');
    await page.getByRole('tab', { name: 'Write' }).focus();
    await page.keyboard.press('ArrowLeft');
    assert.equal(await focused(), 'tab-diff');
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowRight');
    assert.equal(await focused(), 'tab-markdown');
    await page.keyboard.press('Enter');
    await page.getByRole('tabpanel', { name: 'Preview' }).getByRole('heading', { name: 'Notes' }).waitFor();
    assert.equal(await page.getByLabel('Text', { exact: true }).isVisible(), false);
    await assertAccessible(page);
    await page.keyboard.press('End');
    await page.keyboard.press('Space');
    const changes = page.getByRole('tabpanel', { name: 'Changes' });
    await changes.locator('.added', { hasText: 'More' }).waitFor();
    assert.equal(await changes.locator('.added').count(), 1);
    await assertAccessible(page);
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('notes.md is saved in commit').waitFor();

    await page.goto(`${home}/create/main`);
    await page.getByRole('tab', { name: 'Changes' }).waitFor();
    assert.equal(await page.getByRole('tab', { name: 'Preview' }).count(), 0, 'of what is no Markdown');
    await page.getByRole('textbox', { name: 'Path' }).fill('more.md');
    await page.getByLabel('Text', { exact: true }).fill('## More');
    await page.getByRole('tab', { name: 'Preview' }).click();
    await page.getByRole('tabpanel', { name: 'Preview' }).getByRole('heading', { name: 'More' }).waitFor();
    await page.getByRole('textbox', { name: 'Path' }).fill('more.txt');
    await page.getByRole('tabpanel', { name: 'Write' }).waitFor();
  });
});
