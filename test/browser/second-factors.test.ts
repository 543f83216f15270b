/**
 * Second factors in a real browser: an authenticator app with scripts off, and a passkey of a virtual authenticator.
 */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { beforeAll, describe, test } from 'vitest';
import { systemClock } from '../../adapters/node/clock.ts';
import { assertAccessible, startBrowser, type TestBrowser, type Visitor } from '../support/browser.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { PASSWORD, signIn, signUp } from '../support/journey.ts';
import { needs } from '../support/optional-suites.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { codeAt } from '../support/totp-app.ts';

describe('Second factors in a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  let origin: string;
  let browser: TestBrowser;

  beforeAll(async () => {
    const strata = await startNode(ending, await sharedParts(ending));
    // Browsers offer passkeys at a host name only.
    origin = `http://localhost:${new URL(strata.url).port}`;
    browser = await startBrowser(ending);
  });

  /** Signs out and presents the password again; the page of the second step follows. */
  async function signOutAndGivePassword(page: Page, username: string): Promise<void> {
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await signIn(page, username, '/mfa-tokens');
    await page.waitForURL('**/sign-in/verify-mfa');
    await page.getByRole('heading', { name: 'Second step' }).waitFor();
  }

  async function begin(page: Page, kind: string, name: string, button: string): Promise<void> {
    await page.goto('/mfa-tokens');
    await page.getByRole('link', { name: kind }).click();
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Your current password').fill(PASSWORD);
    await page.getByRole('button', { name: button }).click();
  }

  const seedShown = async (page: Page): Promise<string> =>
    (await page.locator('.copy code').innerText()).replaceAll(' ', '');

  async function giveCode(page: Page, code: string, button: 'Activate' | 'Sign in'): Promise<void> {
    await page.getByRole('textbox', { name: 'Code' }).fill(code);
    await page.getByRole('button', { name: button, exact: true }).click();
  }

  /** Gives the page's browser a device with a fingerprint reader, whose owner touches it. */
  async function addAuthenticator({ context, page }: Visitor): Promise<void> {
    const session = await context.newCDPSession(page);
    await session.send('WebAuthn.enable');
    await session.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
  }

  test('that are apps are added and used with scripts off on a phone, and each code signs in once', async (context) => {
    const { page } = await browser.visit(context, origin, { width: 'phone', scheme: 'dark', scripts: false });
    await signUp(page, 'ada');
    await begin(page, 'Add an authenticator app', 'Phone', 'Continue');
    assert.equal(await page.getByRole('img', { name: 'The key as a QR code' }).isVisible(), true);
    const seed = await seedShown(page);
    await giveCode(page, codeAt(seed, systemClock.now()), 'Activate');
    await page.getByText('Phone is active').waitFor();

    await signOutAndGivePassword(page, 'ada');
    await page.goto('/access-tokens');
    await page.getByRole('heading', { name: 'Second step' }).waitFor();
    await giveCode(page, '000000', 'Sign in');
    await page.getByRole('alert').waitFor();
    // The code of the activation is used up; the next one is taken a little early.
    const next = codeAt(seed, systemClock.now(), 1);
    await giveCode(page, next, 'Sign in');
    await page.waitForURL('**/mfa-tokens');

    await signOutAndGivePassword(page, 'ada');
    await giveCode(page, next, 'Sign in');
    await page.getByRole('alert').waitFor();
    await page.getByRole('heading', { name: 'Second step' }).waitFor();
  });

  test('are accessible on every page, and a passkey signs in at a touch', async (context) => {
    const visitor = await browser.visit(context, origin);
    const { page } = visitor;
    await addAuthenticator(visitor);
    await signUp(page, 'grace');
    await page.goto('/mfa-tokens');
    await assertAccessible(page);
    await begin(page, 'Add an authenticator app', 'A phone with quite a long name', 'Continue');
    await assertAccessible(page);
    const seed = await seedShown(page);
    await giveCode(page, '000000', 'Activate');
    await page.getByRole('alert').waitFor();
    await assertAccessible(page);
    await giveCode(page, codeAt(seed, systemClock.now()), 'Activate');
    await page.getByText('A phone with quite a long name is active').waitFor();
    await begin(page, 'Add a passkey', 'Key', 'Continue');
    await assertAccessible(page);
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByText('Key is active').waitFor();
    await assertAccessible(page);
    await begin(page, 'Add a passkey', 'Key again', 'Continue');
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByText('This device already holds one of your passkeys').waitFor();

    await signOutAndGivePassword(page, 'grace');
    await assertAccessible(page);
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.waitForURL('**/mfa-tokens');
    await page.getByRole('link', { name: 'Key', exact: true }).waitFor();
    await page.goto('/settings');
    assert.equal(new URL(page.url()).pathname, '/settings');

    await page.goto('/mfa-tokens');
    await page.getByRole('link', { name: 'Key', exact: true }).click();
    await assertAccessible(page);
    await page.getByLabel('Name').fill('Key of the desk');
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByText('The token is called Key of the desk now.').waitFor();
    await page.getByRole('link', { name: 'Key of the desk' }).click();
    await page.getByLabel('Your current password').fill('not the password');
    await page.getByRole('button', { name: 'Delete MFA token' }).click();
    await page.getByRole('alert').waitFor();
    await assertAccessible(page);
    await page.getByLabel('Your current password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Delete MFA token' }).click();
    await page.getByText('Key of the desk is deleted.').waitFor();
    await page.getByRole('link', { name: 'A phone with quite a long name' }).waitFor();
  });
});
