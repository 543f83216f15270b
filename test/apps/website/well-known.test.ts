/**
 * What programs look for at fixed places of every website: password managers (W3C, A Well-Known URL for Changing
 * Passwords) and those who found a weakness (RFC 9116).
 */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createWebsiteFixture, type WebsiteFixture } from '../../support/website.ts';

describe('A program that knows the website by its address alone', () => {
  let fixture: WebsiteFixture;
  let told: WebsiteFixture;
  beforeAll(async () => {
    fixture = await createWebsiteFixture();
    told = await createWebsiteFixture({ context: { securityContact: 'mailto:security@example.org' } });
  });
  afterAll(async () => {
    await fixture.close();
    await told.close();
  });

  test('is led to the page where the password is changed, by way of the sign-in where needed', async () => {
    const browser = await fixture.signedIn(await fixture.account('ada'));
    const led = await browser.get('/.well-known/change-password');
    assert.deepEqual([led.status, led.location], [303, '/settings/password']);
    assert.match((await browser.follow(led)).html, /autocomplete="new-password"/);
    const stranger = fixture.browser();
    const asked = await stranger.follow(await stranger.get('/.well-known/change-password'));
    assert.match(asked.html, /name="next" value="\/settings\/password"/);
  });

  test('reads whom to tell of a weakness, and until when that holds', async () => {
    const { status, headers, html } = await told.browser().get('/.well-known/security.txt');
    assert.deepEqual([status, headers['content-type']], [200, 'text/plain; charset=utf-8']);
    const [, contact, expires = ''] = /^Contact: (.*)\nExpires: (.*)\n$/.exec(html) ?? [];
    assert.equal(contact, 'mailto:security@example.org');
    const days = (Date.parse(expires) - Date.parse(told.api.clock.now())) / 86_400_000;
    assert.ok(days > 88 && days <= 90, expires);
  });

  test('gets 404 where nobody is named, and where nothing is', async () => {
    assert.equal((await fixture.browser().get('/.well-known/security.txt')).status, 404);
    assert.equal((await told.browser().get('/.well-known/security.txt/x')).status, 404);
  });
});
