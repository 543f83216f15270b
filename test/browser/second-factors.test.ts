/** Second factors in a real browser: an authenticator app with scripts off, and a passkey of a virtual authenticator. */
import assert from 'node:assert/strict';
import { Secret, TOTP } from 'otpauth';
import type { Page } from 'playwright-core';
import { beforeAll, describe, test } from 'vitest';
import { assertAccessible, startBrowser, type TestBrowser } from '../support/browser.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import type { Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

const PASSWORD = 'a long enough passphrase';
const STEP_MS = 30_000;

async function signUp(page: Page, username: string): Promise<void> {
  await page.goto('/sign-up');
  await page.getByLabel('User name').fill(username);
  await page.getByLabel('E-mail').fill(`${username}@example.org`);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign up' }).click();
  await page.getByText(`Welcome, ${username}.`).waitFor();
}

/** Signs out and presents the password again; the page of the second step follows. */
async function signInAgain(page: Page, username: string): Promise<void> {
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.goto('/sign-in');
  await page.getByLabel('User name or e-mail').fill(username);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Second step' }).waitFor();
}

async function beginToken(page: Page, kind: 'app' | 'passkey', name: string): Promise<void> {
  await page.goto(`/mfa-tokens/add/${kind}`);
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Your current password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Continue' }).click();
}

describe('A second factor in a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  let strata: Strata;
  let browser: TestBrowser;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    browser = await startBrowser(ending);
  });

  test('is a code of an app, with scripts off, and each code signs in once', async (context) => {
    const { page } = await browser.visit(context, strata.url, { width: 'phone', scheme: 'dark', scripts: false });
    await signUp(page, 'ada');
    await beginToken(page, 'app', 'phone');
    const key = (await page.locator('.copy code').first().innerText()).replaceAll(' ', '');
    const app = new TOTP({ secret: Secret.fromBase32(key), digits: 6, period: STEP_MS / 1_000 });
    await page.getByRole('textbox', { name: 'Code' }).fill(app.generate());
    await page.getByRole('button', { name: 'Activate' }).click();
    await page.getByText('phone').first().waitFor();

    await signInAgain(page, 'ada');
    await page.goto('/access-tokens');
    await page.getByRole('heading', { name: 'Second step' }).waitFor();
    await page.getByRole('textbox', { name: 'Code' }).fill('000000');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('alert').waitFor();
    // The code of the activation is used up; the next one is taken a little early.
    const next = app.generate({ timestamp: Date.now() + STEP_MS });
    await page.getByRole('textbox', { name: 'Code' }).fill(next);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();

    await signInAgain(page, 'ada');
    await page.getByRole('textbox', { name: 'Code' }).fill(next);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('alert').waitFor();
    await page.getByRole('heading', { name: 'Second step' }).waitFor();
  });

  test('is a passkey, and every page on the way is accessible', async (context) => {
    const { page, context: opened } = await browser.visit(context, strata.url);
    const devTools = await opened.newCDPSession(page);
    await devTools.send('WebAuthn.enable');
    await devTools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true },
        ...{ hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
      },
    });
    await signUp(page, 'grace');
    await page.goto('/mfa-tokens');
    await assertAccessible(page);
    await beginToken(page, 'passkey', 'this laptop');
    await assertAccessible(page);
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByText('Active').first().waitFor();
    await page.goto('/mfa-tokens');
    await page.getByText('this laptop').waitFor();
    await assertAccessible(page);

    await signInAgain(page, 'grace');
    await assertAccessible(page);
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    await page.goto('/settings');
    assert.equal(new URL(page.url()).pathname, '/settings');
  });
});
