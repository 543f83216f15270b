/**
 * What people do, in a real browser with the real git: from sign-up to a first push, tokens of each scope, and a device
 * that logs in. Once with scripts and once without.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { beforeAll, describe, test } from 'vitest';
import { z } from 'zod';
import { assertAccessible, startBrowser, type TestBrowser } from '../support/browser.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { type Check, signUp, unchecked, WAYS } from '../support/journey.ts';
import { needs } from '../support/optional-suites.ts';
import { api, commitFile, git, newWorkTree, type Strata, tryGit } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

const DEVICE = z.object({
  user_code: z.string(),
  secret_token: z.string(),
  poll_url: z.string(),
  verification_url: z.string(),
});
const GRANTED = z.object({ token: z.string(), username: z.string() });

interface WantedToken {
  readonly name: string;
  /** The codes of the grants; all without them. */
  readonly grants?: readonly string[];
  readonly repository?: string;
}

/** Makes a token on its page and returns its secret, which the page shows once. */
async function createToken(page: Page, wanted: WantedToken, check: Check = unchecked): Promise<string> {
  const { name, grants, repository } = wanted;
  await page.goto('/access-tokens/create');
  await page.getByLabel('Name of the token').fill(name);
  if (grants !== undefined) {
    await page.locator('input[name=permissions][value=chosen]').check();
    for (const grant of grants) await page.locator(`input[name=grants][value=${grant}]`).check();
  }
  if (repository !== undefined) {
    await page.locator('input[name=scope][value=SELECTED_REPO]').check();
    await page.getByLabel(repository, { exact: true }).check();
  }
  await check(page);
  await page.locator('main form').getByRole('button').first().click();
  const secret = await page.getByText(/^strata_[0-9A-Za-z]{46}$/).innerText();
  await check(page);
  await page.reload();
  assert.equal(await page.getByText(secret).count(), 0, 'the secret is shown once');
  return secret;
}

async function createRepository(page: Page, name: string): Promise<void> {
  await page.goto('/new');
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByRole('button', { name: 'Create repository' }).click();
  await page.getByRole('heading', { name }).waitFor();
}

describe('In a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  let strata: Strata;
  let browser: TestBrowser;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    browser = await startBrowser(ending);
  });

  /** Types git's address and the token as git asks for them. */
  const remoteOf = (owner: string, name: string, token: string): string =>
    `${strata.url.replace('://', `://x:${token}@`)}/r/${owner}/${name}.git`;

  for (const { how, suffix, look, check } of WAYS) {
    test(`somebody signs up, makes a token and a repository, pushes and reads the code, ${how}`, async (context) => {
      const username = `ada-${suffix}`;
      const { page } = await browser.visit(context, strata.url, look);
      await page.goto('/');
      await page.getByRole('link', { name: 'Sign up' }).first().click();
      await page.getByRole('heading', { name: 'Sign up' }).waitFor();
      await signUp(page, username, check);
      await check(page);
      await createRepository(page, 'engine');
      await check(page);
      const [named = '', pushed = ''] = await page.locator('.copy code').allInnerTexts();
      const token = await createToken(page, { name: 'laptop' }, check);

      const work = await newWorkTree(context);
      await commitFile(work, 'README.md', '# The engine\n\nIt *turns*.\n\n<script>alert(1)</script>\n');
      const tip = await commitFile(work, 'main.c', 'int main(void) {\n  return 0;\n}\n');
      assert.equal(named, `git remote add origin ${strata.url}/r/${username}/engine.git`);
      assert.match(pushed, /^git push -u origin HEAD(:main)?$/);
      await git(work, [...named.split(' ').slice(1, -1), remoteOf(username, 'engine', token)]);
      await git(work, ['push', '--quiet', '-u', 'origin', 'main']);

      await page.goto(`/${username}/engine`);
      await page.getByRole('heading', { name: 'The engine' }).waitFor();
      await page.getByText('<script>alert(1)</script>').waitFor();
      await check(page);
      await page.getByRole('link', { name: 'main.c', exact: true }).click();
      await page.getByText('return').first().waitFor();
      await check(page);
      await page.goto(`/${username}/engine/commit/${tip}`);
      await page.getByText('Write main.c').first().waitFor();
      await check(page);
      await page.goto(`/${username}/engine/commits`);
      await page.getByRole('link', { name: 'Write README.md' }).first().waitFor();
      await check(page);
      for (const path of [`/${username}`, '/access-tokens']) {
        await page.goto(path);
        await check(page);
      }
    });
  }

  test('a wrong form keeps what was entered, says what is wrong beside the field, and stays accessible', async (context) => {
    const { page } = await browser.visit(context, strata.url, { width: 'phone' });
    await page.goto('/sign-up');
    await page.getByLabel('Username').fill('Not A Name');
    await page.getByLabel('Email').fill('someone@example.org');
    await page.getByLabel('Password').fill('short');
    await page.getByRole('button', { name: 'Sign up' }).click();
    await page.getByRole('alert').waitFor();
    assert.equal(await page.getByLabel('Username').inputValue(), 'Not A Name');
    assert.equal(await page.getByLabel('Username').getAttribute('aria-invalid'), 'true');
    assert.equal(await page.getByLabel('Password').inputValue(), '', 'no password is sent back');
    await assertAccessible(page);
  });

  test('a token reaches what its page said: everything, one repository, or reading only', async (context) => {
    const { page } = await browser.visit(context, strata.url);
    await signUp(page, 'edith');
    await createRepository(page, 'first');
    await createRepository(page, 'second');
    const work = await newWorkTree(context);
    const push = async (token: string, name: string): Promise<number | null> =>
      (await tryGit(work, ['push', '--quiet', remoteOf('edith', name, token), 'HEAD:refs/heads/main'])).code;
    const list = async (token: string): Promise<number> => (await api(strata, token, 'GET', '/v1/repositories')).status;

    const all = await createToken(page, { name: 'all' });
    assert.deepEqual([await push(all, 'first'), await push(all, 'second'), await list(all)], [0, 0, 200]);
    const one = await createToken(page, { name: 'one', grants: ['GIT_HTTP_WRITE'], repository: 'first' });
    assert.deepEqual([await push(one, 'first'), await push(one, 'second'), await list(one)], [0, 128, 403]);
    const reading = await createToken(page, { name: 'reading', grants: ['GIT_HTTP_READ'] });
    assert.equal(await push(reading, 'first'), 128);
    assert.equal((await tryGit(work, ['ls-remote', remoteOf('edith', 'first', reading)])).code, 0);

    await page.goto('/access-tokens');
    await page.getByRole('link', { name: 'Edit reading' }).click();
    await assertAccessible(page);
    await page.getByLabel('Name of the token').fill('reading and listing');
    await page.locator('input[name=grants][value=API_REPOS_READ]').check();
    await page.locator('main form').getByRole('button').first().click();
    await page.waitForURL('**/access-tokens');
    await page.getByRole('link', { name: 'Edit reading and listing' }).waitFor();
    assert.equal(await list(reading), 200);

    await page.getByRole('link', { name: 'Revoke all' }).click();
    await assertAccessible(page);
    await page.getByRole('button', { name: /Revoke/ }).click();
    await page.waitForURL('**/access-tokens');
    assert.equal(await list(all), 401);
  });

  for (const { how, suffix, look, check } of WAYS) {
    test(`a device shows its code, its person decides, and the device gets a token once or none, ${how}`, async (context) => {
      const username = `joan-${suffix}`;
      const { page } = await browser.visit(context, strata.url, look);
      await signUp(page, username);
      const begin = async (hostname: string) => {
        const begun = await fetch(`${strata.url}/v1/auth/sessions`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify({ hostname }),
        });
        return DEVICE.parse(await begun.json());
      };
      const poll = async ({ poll_url, secret_token }: z.infer<typeof DEVICE>): Promise<Response> => {
        let answer = await fetch(`${poll_url}?secret_token=${secret_token}`);
        while (answer.status === 429) {
          await sleep(500);
          answer = await fetch(`${poll_url}?secret_token=${secret_token}`);
        }
        return answer;
      };
      const device = await begin('build-<b>host</b>');
      assert.equal((await poll(device)).status, 202);
      await page.goto(device.verification_url);
      assert.equal(await page.locator('#code').innerText(), device.user_code);
      await page.getByText('build-<b>host</b>').waitFor();
      await check(page);
      await page.getByLabel('Name of the token').fill('the build host');
      await page.getByRole('button', { name: 'Grant' }).click();
      await page.getByText('Granted.').waitFor();
      const answer = await poll(device);
      assert.equal(answer.status, 200);
      const granted = GRANTED.parse(await answer.json());
      assert.equal(granted.username, username);
      assert.equal((await api(strata, granted.token, 'GET', '/v1/repositories')).status, 200);
      assert.equal((await poll(device)).status, 410);
      await page.goto('/access-tokens');
      await page.getByText('the build host').first().waitFor();

      const stranger = await begin('stranger');
      await page.goto(stranger.verification_url);
      await page.getByRole('button', { name: 'Deny' }).click();
      await page.getByText('Denied. The device gets nothing.').waitFor();
      assert.equal((await poll(stranger)).status, 403);
      await page.goto(stranger.verification_url);
      await page.getByText('granted or denied already').waitFor();
      await check(page);
    });
  }
});
