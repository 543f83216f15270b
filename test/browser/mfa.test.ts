/** Second factors in a real browser: an authenticator app with scripts off, and a passkey of a virtual authenticator. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { beforeAll, describe, test } from 'vitest';
import { systemClock } from '../../adapters/node/clock.ts';
import { assertAccessible, LOOKS, startBrowser, type TestBrowser, type Visitor } from '../support/browser.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { needs } from '../support/optional-suites.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { codeAt } from '../support/totp-app.ts';

const PASSWORD = 'correct horse battery';

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

  async function signUp(page: Page, username: string): Promise<void> {
    await page.goto('/sign-up');
    await page.getByLabel('User name').fill(username);
    await page.getByLabel('E-mail').fill(`${username}@example.org`);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign up' }).click();
  }

  async function signOutAndGivePassword(page: Page, username: string): Promise<void> {
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await page.goto('/sign-in?next=%2Fmfa-tokens');
    await page.getByLabel('User name or e-mail').fill(username);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/sign-in/verify-mfa');
  }

  async function begin(page: Page, kind: string, name: string, button: string): Promise<void> {
    await page.goto('/mfa-tokens');
    await page.getByRole('link', { name: kind }).click();
    await page.getByLabel('Name').fill(name);
    await page.getByLabel('Your current password').fill(PASSWORD);
    await page.getByRole('button', { name: button }).click();
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

  test('that are apps are added, used and read by everybody, with scripts off', async (context) => {
    const { page } = await browser.visit(context, origin, { scripts: false });
    await signUp(page, 'ada');
    await begin(page, 'Add an authenticator app', 'Phone', 'Continue');
    assert.equal(await page.getByRole('img', { name: 'The key as a QR code' }).isVisible(), true);
    const seed = (await page.locator('.copy code').innerText()).replaceAll(' ', '');
    await page.getByRole('textbox', { name: 'Code' }).fill(codeAt(seed, systemClock.now()));
    await page.getByRole('button', { name: 'Activate' }).click();
    await page.getByText('Phone is active').waitFor();
    await signOutAndGivePassword(page, 'ada');
    await page.getByRole('textbox', { name: 'Code' }).fill(codeAt(seed, systemClock.now(), 1));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL('**/mfa-tokens');
  });

  for (const look of LOOKS) {
    test(`are accessible on a ${look.width} in ${look.scheme} colours, and a passkey signs in at a touch`, async (context) => {
      const visitor = await browser.visit(context, origin, look);
      const { page } = visitor;
      const username = `cyd-${look.width}`;
      await addAuthenticator(visitor);
      await signUp(page, username);
      await page.goto('/mfa-tokens');
      await assertAccessible(page);
      await begin(page, 'Add an authenticator app', 'A phone with quite a long name', 'Continue');
      await assertAccessible(page);
      const seed = (await page.locator('.copy code').innerText()).replaceAll(' ', '');
      await page.getByRole('textbox', { name: 'Code' }).fill('000000');
      await page.getByRole('button', { name: 'Activate' }).click();
      await assertAccessible(page);
      await page.getByRole('textbox', { name: 'Code' }).fill(codeAt(seed, systemClock.now()));
      await page.getByRole('button', { name: 'Activate' }).click();
      await begin(page, 'Add a passkey', 'Key', 'Continue');
      await assertAccessible(page);
      await page.getByRole('button', { name: 'Create passkey' }).click();
      await page.getByText('Key is active').waitFor();
      await assertAccessible(page);
      await begin(page, 'Add a passkey', 'Key again', 'Continue');
      await page.getByRole('button', { name: 'Create passkey' }).click();
      await page.getByText('This device already holds one of your passkeys').waitFor();
      await signOutAndGivePassword(page, username);
      await assertAccessible(page);
      await page.getByRole('button', { name: 'Use a passkey' }).click();
      await page.waitForURL('**/mfa-tokens');
    });
  }
});
