/** The settings of an account: its password, its address, its sessions, and its deletion. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type Browser, createWebsiteFixture, PASSWORD, type WebsiteFixture } from '../../support/website.ts';

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0';

describe('The settings', () => {
  let fixture: WebsiteFixture;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
  });
  afterAll(() => fixture.close());

  const signIn = async (login: string, password = PASSWORD): Promise<Browser> => {
    const browser = fixture.browser();
    const { status } = await browser.submit('/sign-in', { login, password });
    assert.equal(status, 303);
    return browser;
  };
  const isIn = async (browser: Browser): Promise<boolean> => (await browser.get('/settings')).status === 200;

  test('changing the password asks for the old one, keeps this browser in and signs all others out', async () => {
    await fixture.account('ada');
    const [here, there] = [await signIn('ada'), await signIn('ada')];
    const before = here.cookies.get('strata_session');
    const wanted = { new_password: 'a longer password', new_password_again: 'a longer password' };
    const wrong = await here.submit('/settings/password', { ...wanted, current_password: 'wrong' });
    assert.equal(wrong.status, 422);
    assert.match(wrong.html, /<a href="#current_password">This is not the password\.<\/a>/);
    const differs = await here.submit('/settings/password', {
      ...wanted,
      new_password_again: 'x',
      current_password: PASSWORD,
    });
    assert.match(differs.html, /<a href="#new_password_again">The two new passwords differ\./);
    const short = { new_password: 'short', new_password_again: 'short', current_password: PASSWORD };
    assert.match((await here.submit('/settings/password', short)).html, /<a href="#new_password">A password has/);
    assert.ok(await isIn(there));
    const changed = await here.submit('/settings/password', { ...wanted, current_password: PASSWORD });
    assert.equal(changed.location, '/settings');
    assert.match((await here.follow(changed)).html, /Your password is changed/);
    assert.notEqual(here.cookies.get('strata_session'), before);
    assert.ok(!(await isIn(there)));
    assert.equal((await fixture.browser().submit('/sign-in', { login: 'ada', password: PASSWORD })).status, 422);
    assert.ok(await isIn(await signIn('ada', 'a longer password')));
  });

  test('changing the email address asks for the password', async () => {
    await fixture.account('bob');
    await fixture.account('rob');
    const bob = await signIn('bob');
    const wrong = await bob.submit('/settings/email', { email: 'new@example.org', current_password: 'wrong' });
    assert.equal(wrong.status, 422);
    assert.match(wrong.html, /value="new@example.org"/);
    const taken = await bob.submit('/settings/email', { email: 'rob@example.org', current_password: PASSWORD });
    assert.match(taken.html, /<a href="#email">/);
    const changed = await bob.submit('/settings/email', { email: 'new@example.org', current_password: PASSWORD });
    assert.match((await bob.follow(changed)).html, /<dd>new@example.org<\/dd>/);
    assert.ok(await isIn(await signIn('new@example.org')));
  });

  test('lists the sessions with their browser and address, and revokes one or all others', async () => {
    await fixture.account('cyd');
    const [here, phone, other] = [await signIn('cyd'), fixture.browser(), await signIn('cyd')];
    const form = await phone.get('/sign-in');
    const [, token = ''] = /name="_csrf" value="([^"]+)"/.exec(form.html) ?? [];
    const fields = { _csrf: token, login: 'cyd', password: PASSWORD };
    assert.equal((await phone.post('/sign-in', fields, { 'user-agent': FIREFOX })).status, 303);
    const { html } = await here.get('/settings');
    assert.equal(html.match(/<div class="what">/g)?.length, 3);
    assert.equal(html.match(/this browser/g)?.length, 1);
    const [, revoke = ''] = /Firefox on Linux.*?action="(\/settings\/sessions\/[^"]+\/revoke)"/s.exec(html) ?? [];
    const revoked = await here.submit(revoke, {}, '/settings');
    assert.match((await here.follow(revoked)).html, /That browser is signed out/);
    assert.deepEqual([await isIn(phone), await isIn(other)], [false, true]);
    assert.equal((await here.submit(revoke, {}, '/settings')).status, 404);
    await here.submit('/settings/sessions/revoke-others', {}, '/settings');
    assert.deepEqual([await isIn(here), await isIn(other)], [true, false]);
  });

  test('notes at most every ten minutes when a session was used, and ends one that was not used for 14 days', async () => {
    const browser = await fixture.signedIn(await fixture.account('dora'));
    const { clock } = fixture.api;
    clock.advance(10 * 60_000 - 1);
    assert.match((await browser.get('/settings')).html, /10 minutes ago<\/time><div class="what">/);
    clock.advance(1);
    assert.match((await browser.get('/settings')).html, /just now<\/time><div class="what">/);
    clock.advance(14 * 86_400_000 - 1);
    assert.ok(await isIn(browser));
    clock.advance(14 * 86_400_000);
    assert.ok(!(await isIn(browser)));
  });

  test('ends a session 30 days after its sign-in, however often it was used', async () => {
    const browser = await fixture.signedIn(await fixture.account('ella'));
    for (let days = 0; days < 30; days += 10) {
      assert.ok(await isIn(browser), `${days} days`);
      fixture.api.clock.advance(10 * 86_400_000 - (days === 20 ? 1 : 0));
    }
    assert.ok(await isIn(browser));
    fixture.api.clock.advance(1);
    assert.ok(!(await isIn(browser)));
  });

  test('deleting the account asks for its name and password, ends every session, and can be undone', async () => {
    await fixture.account('finn');
    const [here, there] = [await signIn('finn'), await signIn('finn')];
    const wrongName = await here.submit('/settings/delete', { username: 'fin', current_password: PASSWORD });
    assert.match(wrongName.html, /<a href="#username">This is not your username\./);
    const wrong = await here.submit('/settings/delete', { username: 'finn', current_password: 'wrong' });
    assert.match(wrong.html, /<a href="#current_password">/);
    const deleted = await here.submit('/settings/delete', { username: 'finn', current_password: PASSWORD });
    assert.match((await here.follow(deleted)).html, /Your account is closed\. Sign in within 14 days to undo this\./);
    assert.deepEqual([await isIn(here), await isIn(there)], [false, false]);

    fixture.api.clock.advance(14 * 86_400_000 - 1);
    const back = fixture.browser();
    assert.equal((await back.submit('/sign-in', { login: 'finn', password: PASSWORD })).location, '/sign-in/reopen');
    assert.equal((await back.get('/settings')).location, '/sign-in/reopen');
    assert.equal((await back.get('/sign-in')).location, '/sign-in/reopen');
    const reopened = await back.submit('/sign-in/reopen');
    assert.equal(reopened.location, '/finn');
    assert.ok(await isIn(back));
  });

  test('cannot undo a deletion from the end of the 14 days on', async () => {
    await fixture.account('gina');
    const gina = await signIn('gina');
    await gina.submit('/settings/delete', { username: 'gina', current_password: PASSWORD });
    const late = fixture.browser();
    await late.submit('/sign-in', { login: 'gina', password: PASSWORD });
    fixture.api.clock.advance(14 * 86_400_000);
    assert.equal((await late.get('/sign-in/reopen')).location, '/sign-in');
    assert.equal((await late.submit('/sign-in', { login: 'gina', password: PASSWORD })).status, 422);
  });
});
