/**
 * The account's settings, its webhooks, and the pages of who cannot get in, in a real browser. Each journey is taken
 * once with every page checked, and once with scripts off.
 */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { beforeAll, describe, test } from 'vitest';
import { SIGN_IN_FAILURES_PAIR_MAX } from '../../core/use-cases/callers/password-guesses.ts';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { cleanUp, suiteEnding } from '../support/cleanup.ts';
import { freePort } from '../support/free-port.ts';
import { PASSWORD, signIn, signUp, WAYS } from '../support/journey.ts';
import { needs } from '../support/optional-suites.ts';
import { until } from '../support/read-models.ts';
import { answering } from '../support/receiver.ts';
import type { Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { NO_CONTENT, signatureOf, type WebhookReceivers, webhookReceivers } from '../support/webhook-receiver.ts';
import { createWebsiteFixture } from '../support/website.ts';

const NEW_PASSWORD = 'another long passphrase';
const FAILING = answering('HTTP/1.1 500 Oops\r\nContent-Length: 15\r\n\r\nno <b>luck</b>!');

describe('In a browser', needs('chromium'), () => {
  const ending = suiteEnding();
  let receivers: WebhookReceivers;
  let strata: Strata;
  let browser: TestBrowser;

  beforeAll(async () => {
    receivers = await webhookReceivers(ending);
    strata = await startNode(ending, await sharedParts(ending), receivers.env);
    browser = await startBrowser(ending);
  });

  const press = (page: Page, name: string | RegExp): Promise<void> => page.getByRole('button', { name }).click();
  const follow = (page: Page, name: string): Promise<void> =>
    page.getByRole('link', { name, exact: true }).first().click();

  async function assertSignedOut(page: Page): Promise<void> {
    await page.goto('/settings');
    assert.equal(new URL(page.url()).pathname, '/sign-in');
  }

  for (const { how, suffix, look, check } of WAYS) {
    test(`somebody changes address and password, ends sessions, deletes the account and undoes it, ${how}`, async (context) => {
      const { page } = await browser.visit(context, strata.url, look);
      const { page: other } = await browser.visit(context, strata.url, look);
      const [username, email] = [`ada-${suffix}`, `moved-${suffix}@example.org`];
      await signUp(page, username);

      await page.goto('/settings');
      await follow(page, 'Change email');
      await page.getByLabel('New email').fill(email);
      await page.getByLabel('Your current password').fill('not the password');
      await press(page, 'Change email');
      await page.getByRole('alert').waitFor();
      assert.equal(await page.getByLabel('New email').inputValue(), email);
      await check(page);
      await page.getByLabel('Your current password').fill(PASSWORD);
      await press(page, 'Change email');
      await page.getByText('Your email address is changed.').waitFor();
      await page.getByRole('definition').getByText(email, { exact: true }).waitFor();

      await signIn(other, email, '/settings');
      await other.waitForURL('**/settings');
      await page.goto('/settings');
      await check(page);
      await press(page, /^Sign out Chrome/);
      await page.getByText('That browser is signed out.').waitFor();
      await assertSignedOut(other);

      await signIn(other, email, '/settings');
      await other.waitForURL('**/settings');
      await follow(page, 'Change password');
      await page.getByLabel('Your current password').fill(PASSWORD);
      await page.getByLabel('New password', { exact: true }).fill(NEW_PASSWORD);
      await page.getByLabel('New password, again').fill('something else entirely');
      await press(page, 'Change password');
      await page.getByText('The two new passwords differ.').first().waitFor();
      await check(page);
      await page.getByLabel('Your current password').fill(PASSWORD);
      await page.getByLabel('New password', { exact: true }).fill(NEW_PASSWORD);
      await page.getByLabel('New password, again').fill(NEW_PASSWORD);
      await press(page, 'Change password');
      await page.getByText('Your password is changed.').waitFor();
      await assertSignedOut(other);
      await signIn(other, username, '/settings');
      await other.getByRole('alert').waitFor();
      await signIn(other, username, '/settings', NEW_PASSWORD);
      await other.waitForURL('**/settings');
      await page.goto('/settings');
      await press(page, 'Sign out all others');
      await page.getByText('Every other browser is signed out.').waitFor();
      await assertSignedOut(other);

      await follow(page, 'Delete account…');
      await page.getByLabel('Type your username').fill('somebody');
      await page.getByLabel('Your current password').fill(NEW_PASSWORD);
      await press(page, 'Delete my account');
      await page.getByText('This is not your username.').first().waitFor();
      await check(page);
      await page.getByLabel('Type your username').fill(username);
      await page.getByLabel('Your current password').fill(NEW_PASSWORD);
      await press(page, 'Delete my account');
      await page.getByText('Your account is closed.').waitFor();
      await check(page);
      await signIn(page, username, '/settings', NEW_PASSWORD);
      await page.getByRole('heading', { name: 'This account is closed' }).waitFor();
      await check(page);
      await press(page, 'Open my account again');
      await page.getByText('Your account is open again').waitFor();
      await follow(page, 'Usage');
      await page.getByRole('heading', { name: 'Usage' }).waitFor();
      await check(page);
    });

    test(`a webhook is made, tried, changed and deleted, ${how}`, async (context) => {
      const receiver = await receivers.start(FAILING, NO_CONTENT);
      const { page } = await browser.visit(context, strata.url, look);
      await signUp(page, `cyd-${suffix}`);
      await follow(page, 'Webhooks');
      await check(page);
      await follow(page, 'New webhook');
      await page.getByLabel('URL').fill('http://example.org/hook');
      await press(page, 'Create webhook');
      await page.getByRole('alert').waitFor();
      assert.equal(await page.getByLabel('URL').inputValue(), 'http://example.org/hook');
      await check(page);
      await page.getByLabel('URL').fill(receiver.url);
      await page.locator('input[name=events][value=create]').check();
      await press(page, 'Create webhook');
      const secret = await page.locator('.copy code').innerText();
      await check(page);
      await follow(page, 'I have copied it');
      await page.getByText('No deliveries yet').waitFor();
      assert.equal((await page.content()).includes(secret), false, 'the secret is shown once');
      const webhook = page.url();
      await check(page);

      await press(page, 'Send a ping');
      await page.getByText('The ping is on its way.').waitFor();
      const delivery = page.url();
      const [ping] = await receiver.until(1);
      assert.ok(ping !== undefined);
      assert.equal(ping.headers['x-service-signature'], signatureOf(secret, ping.raw));
      const shows = async (text: string): Promise<boolean> => {
        await page.goto(delivery);
        return (await page.getByText(text, { exact: true }).count()) > 0;
      };
      await until(() => shows('no <b>luck</b>!'));
      assert.match(await page.locator('.attempts').innerText(), /500.*after 8 s/s);
      assert.match(await page.locator('pre').first().innerText(), /"type":\s*"ping"/);
      await check(page);
      await page.goto(webhook);
      await check(page);

      await follow(page, 'Rotate secret…');
      await check(page);
      await press(page, 'Rotate secret');
      const rotated = await page.locator('.copy code').innerText();
      assert.notEqual(rotated, secret);
      await follow(page, 'I have copied it');
      await receiver.until(2);
      await until(() => shows('delivered'));
      await press(page, 'Redeliver');
      await page.getByText('The delivery is sent again.').waitFor();
      const again = (await receiver.until(3))[2];
      assert.ok(again !== undefined);
      assert.equal(again.headers['x-service-signature'], signatureOf(rotated, again.raw));
      assert.equal(again.headers['x-service-signature-previous'], signatureOf(secret, again.raw));
      await until(async () => (await shows('delivered')) && (await page.getByText(/series 2/).count()) > 0);
      await check(page);
      const payload = await page.context().request.get(`${delivery}/payload`);
      assert.match(payload.headers()['content-disposition'] ?? '', /^attachment/);
      assert.deepEqual(await payload.body(), again.raw);

      await page.goto(webhook);
      await follow(page, 'Edit');
      await page.getByLabel('Active').uncheck();
      await check(page);
      await press(page, 'Save');
      await page.getByText('The webhook is changed.').waitFor();
      await follow(page, 'Webhooks');
      await page.getByRole('cell', { name: 'inactive' }).waitFor();
      await check(page);
      await page.goto(webhook);
      await follow(page, 'Delete…');
      await check(page);
      await press(page, 'Delete webhook');
      await page.getByText('The webhook is deleted.').waitFor();
      await page.getByText('No webhooks yet').waitFor();
    });

    test(`who has no account, no password, no more attempts or the address of a form is told what to do, ${how}`, async (context) => {
      const port = await freePort();
      const url = `http://localhost:${port}`;
      const fixture = await createWebsiteFixture({
        context: {
          signUpOpen: false,
          operatorContact: 'help@example.org',
          addresses: () => ({ baseUrl: url, webUrl: url }),
          clientAddress: () => '192.0.2.1',
        },
      });
      cleanUp(context, () => fixture.close());
      await fixture.site.listen({ port, host: 'localhost' });
      const { page } = await browser.visit(context, url, look);
      await page.goto('/sign-out');
      await page.getByRole('heading', { name: 'Method not allowed' }).waitFor();
      await check(page);
      await page.goto('/sign-up');
      await page.getByRole('heading', { name: 'Sign-up is closed' }).waitFor();
      await page.getByText('help@example.org').waitFor();
      await check(page);
      await page.getByRole('main').getByRole('link', { name: 'Sign in' }).click();
      await follow(page, 'Forgotten password?');
      await page.getByText('help@example.org').waitFor();
      await check(page);
      await page.getByRole('main').getByRole('link', { name: 'Back to sign-in' }).click();
      const guesser = fixture.browser();
      for (let guess = 0; guess < SIGN_IN_FAILURES_PAIR_MAX; guess += 1)
        await guesser.submit('/sign-in', { login: 'ada', password: 'a wrong guess' });
      await page.getByLabel('Username or email').fill('ada');
      await page.getByLabel('Password').fill(PASSWORD);
      const answered = page.waitForResponse((answer) => answer.request().method() === 'POST');
      await press(page, 'Sign in');
      assert.equal((await answered).status(), 429);
      await page.getByRole('alert').getByText('Too many attempts').waitFor();
      assert.equal(await page.getByLabel('Username or email').inputValue(), 'ada');
      await check(page);
    });
  }
});
