/** The page of sign-ins: who got in, what failed, and which reads were refused. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { AGENT_LENGTH_MAX, SIGN_IN_ROWS_MAX } from '../../../apps/website/history/sign-ins.ts';
import { PAGE_BYTES_MAX } from '../../../apps/website/layout/weight.ts';
import { recordUsage } from '../../../core/use-cases/metering/record-usage.ts';
import { recordFailure, recordSignIn } from '../../../core/use-cases/signing-in/sign-in.ts';
import { createWebsiteFixture, type WebsiteFixture } from '../../support/website.ts';

const plain = (html: string): string =>
  html
    .replace(/<[^>]*>/g, ' ')
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replace(/\s+/g, ' ');

describe('The page of sign-ins', () => {
  let fixture: WebsiteFixture;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
  });
  afterAll(() => fixture.close());

  test('shows today’s and those of earlier days, each with its event', async () => {
    const { api } = fixture;
    const account = await api.account('ada');
    const browser = await fixture.signedIn(account);
    const origin = { requestId: 'request', address: '192.0.2.7', userAgent: 'Mozilla/5.0 (X11; Linux) Firefox/130.0' };
    await recordFailure(api.context, origin, account, { factor: 'totp', reason: 'mfa-code-used' });
    api.clock.advance(24 * 60 * 60_000);
    const { events, ids, written } = api.context;
    const signal = new AbortController().signal;
    await recordUsage({ events, ids, written, clock: api.clock, marks: api.marks }, signal);
    await recordSignIn(api.context, origin, account, ['password', 'totp']);
    const token = await api.token(account, { grants: ['API_REPOS_READ'] });
    await api.request('GET', '/v1/account/events', token);
    await api.context.transfer.flush();
    assert.match((await browser.get('/history')).html, /href="\/history\/sign-ins"/);
    const { status, html } = await browser.get('/history/sign-ins');
    assert.equal(status, 200);
    assert.match(html, /<title>Sign-ins · Strata<\/title>/);
    const text = plain(html);
    assert.match(
      text,
      /Today .*Signed in with the password and the code of an app Firefox on Linux · from 192\.0\.2\.7/,
    );
    assert.match(text, /1 refused read: the token lacks the grant/);
    assert.match(text, /1 failed sign-in: the code of an app \(used before\)/);
    const [, event = ''] = /href="(\/history\/[0-9a-f-]{36})"/.exec(html) ?? [];
    assert.match(plain((await browser.follow(await browser.get(event))).html), /Recorded the usage of/);
  });

  // The attack: browsers that name themselves in markup, and very many sign-ins.
  test('shows names of browsers as text, and as many rows of a day as the limit', async () => {
    const { api } = fixture;
    const account = await api.account('eve');
    const browser = await fixture.signedIn(account);
    const signIn = (userAgent: string) =>
      recordSignIn(api.context, { requestId: 'request', address: '192.0.2.7', userAgent }, account, ['password']);
    const markup = '<script>alert(1)</script>';
    for (let n = 1; n < SIGN_IN_ROWS_MAX; n += 1) await signIn(markup.padEnd(AGENT_LENGTH_MAX + 1, '&'));
    await signIn('y'.repeat(AGENT_LENGTH_MAX));
    const whole = (await browser.get('/history/sign-ins')).html;
    assert.doesNotMatch(whole, /<script>alert/);
    assert.equal(plain(whole).match(/Signed in with/g)?.length, SIGN_IN_ROWS_MAX);
    assert.doesNotMatch(plain(whole), /more sign-in/);
    assert.ok(whole.includes(`title="${'y'.repeat(AGENT_LENGTH_MAX)}"`));
    const [, title = ''] = /title="([^"]*script[^"]*)"/.exec(whole) ?? [];
    assert.equal(title.replaceAll(/&#\d+;/g, 'x').length, AGENT_LENGTH_MAX);
    assert.ok(title.endsWith('…'));
    await signIn('z');
    const { html } = await browser.get('/history/sign-ins');
    assert.equal(plain(html).match(/Signed in with/g)?.length, SIGN_IN_ROWS_MAX);
    assert.match(plain(html), /1 more sign-in, which the API/);
    assert.ok(Buffer.byteLength(html) <= PAGE_BYTES_MAX);
  });

  test('is for who is signed in, and not there for an address that no page leads to', async () => {
    const browser = await fixture.signedIn(await fixture.api.account('gus'));
    assert.equal((await browser.get('/history/sign-ins?before=x')).status, 404);
    assert.match(plain((await browser.get('/history/sign-ins')).html), /Nobody signed in, and nothing was refused/);
    assert.equal((await fixture.browser().get('/history/sign-ins')).status, 303);
  });
});
