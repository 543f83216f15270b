/** Signing up, signing in and signing out, as people do it with a browser. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { redirectTo } from '../../../apps/website/layout/answer.ts';
import { SESSION_KEPT_LENGTH_MAX } from '../../../apps/website/sessions/browser-sessions.ts';
import { createWebsiteFixture, PASSWORD, type WebsiteFixture } from '../../support/website.ts';

describe('Sign-up', () => {
  let fixture: WebsiteFixture;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
    await fixture.account('taken');
  });
  afterAll(() => fixture.close());

  const sent = { username: 'ada', email: 'ada@example.org', password: PASSWORD };

  test('makes an account, signs its person in and leads to their repositories', async () => {
    const ada = fixture.browser();
    const signedUp = await ada.submit('/sign-up', sent);
    assert.deepEqual([signedUp.status, signedUp.location], [303, '/ada']);
    const settings = await ada.get('/settings');
    assert.equal(settings.status, 200);
    assert.match(settings.html, /<dd>ada<\/dd>.*<dd>ada@example.org<\/dd>/s);
    assert.match(settings.html, /Welcome, ada\./);
  });

  test('names the field at fault beside it and above the form, and keeps what was entered but the password', async () => {
    for (const [fields, field, message] of [
      [{ username: 'No Name' }, 'username', 'A username holds a-z'],
      [{ username: 'settings' }, 'username', ''],
      [{ username: 'taken' }, 'username', ''],
      [{ email: 'nowhere' }, 'email', ''],
      [{ email: 'Taken@example.org' }, 'email', ''],
      [{ password: 'too short' }, 'password', 'A password has 10 to 1024 characters'],
    ] as const) {
      const entered = { ...sent, username: 'bob', email: 'bob@example.org', ...fields };
      const refused = await fixture.browser().submit('/sign-up', entered);
      assert.equal(refused.status, 422, field);
      assert.match(refused.html, new RegExp(`role="alert" id="errors"><p><a href="#${field}">${message}`));
      assert.match(
        refused.html,
        new RegExp(`<input id="${field}"[^>]* aria-describedby="${field}-error[^>]* aria-invalid="true"`),
      );
      assert.match(refused.html, new RegExp(`<p class="wrong" id="${field}-error">${message}`));
      assert.ok(
        refused.html.includes(`value="${entered.username}"`) && refused.html.includes(`value="${entered.email}"`),
      );
      assert.ok(!refused.html.includes(entered.password));
    }
  });

  test('names all fields at fault together', async () => {
    const wrong = { ...sent, username: 'No Name', email: 'nowhere', password: 'short' };
    const refused = await fixture.browser().submit('/sign-up', wrong);
    assert.match(refused.html, /id="errors">.*href="#username".*href="#email".*href="#password"/s);
  });

  test('is refused with 429 and the form when a network tries too often', async () => {
    const limited = await createWebsiteFixture();
    for (let count = 0; count < 20; count += 1) {
      const { status } = await limited
        .browser()
        .submit('/sign-up', { ...sent, username: `ada-${count}`, email: `${count}@example.org` });
      assert.equal(status, 303);
    }
    const refused = await limited
      .browser()
      .submit('/sign-up', { ...sent, username: 'one-more', email: 'more@example.org' });
    assert.equal(refused.status, 429);
    assert.match(String(refused.headers['retry-after']), /^\d+$/);
    assert.match(refused.html, /Too many attempts: try again in .*value="one-more"/s);
    await limited.close();
  });

  test('says who makes accounts where it is closed', async () => {
    const closed = await createWebsiteFixture({ context: { signUpOpen: false, operatorContact: 'ops@example.org' } });
    const browser = closed.browser();
    const page = await browser.get('/sign-up');
    assert.equal(page.status, 403);
    assert.match(page.html, /<a href="mailto:ops@example.org">/);
    for (const path of ['/', '/sign-in']) assert.doesNotMatch((await browser.get(path)).html, /href="\/sign-up"/);
    assert.equal((await browser.submit('/sign-up', sent, '/sign-in')).status, 403);
    await closed.close();
  });
});

describe('Sign-in', () => {
  let fixture: WebsiteFixture;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
    await fixture.account('ada');
  });
  afterAll(() => fixture.close());

  test('takes the username or the email address, in any case of letters', async () => {
    for (const login of ['ada', 'ADA', ' ada ', 'ada@example.org', 'Ada@Example.org']) {
      const browser = fixture.browser();
      const signedIn = await browser.submit('/sign-in', { login, password: PASSWORD });
      assert.deepEqual([signedIn.status, signedIn.location], [303, '/ada'], login);
      assert.equal((await browser.get('/settings')).status, 200);
    }
  });

  test('leads back to the page that asked for it, with its query', async () => {
    const browser = fixture.browser();
    const asked = await browser.get('/settings/email?a=%26b');
    const form = await browser.follow(asked);
    assert.match(form.html, /name="next" value="\/settings\/email\?a&#61;%26b"/);
    const fields = { login: 'ada', password: PASSWORD, next: '/settings/email?a=%26b' };
    assert.equal((await browser.submit('/sign-in', fields)).location, '/settings/email?a=%26b');
  });

  test('keeps the name after a wrong password, and not the password', async () => {
    const refused = await fixture.browser().submit('/sign-in', { login: 'ada', password: 'wrong horse battery' });
    assert.equal(refused.status, 422);
    assert.match(refused.html, /The name or the password is wrong\..*name="login"[^>]* value="ada"/s);
    assert.doesNotMatch(refused.html, /wrong horse/);
  });

  test('leads who is signed in on, from the sign-in page, the sign-up page and the start page', async () => {
    const ada = await fixture.signedIn(await fixture.account('onward'));
    for (const path of ['/sign-in', '/sign-up', '/']) assert.equal((await ada.get(path)).location, '/onward');
    assert.equal((await ada.get('/sign-in?next=/usage')).location, '/usage');
  });

  test('says who helps with a forgotten password', async () => {
    const page = await fixture.browser().get('/forgotten-password');
    assert.equal(page.status, 200);
    assert.match(page.html, /Ask the person or the team who gave you this address/);
    const told = await createWebsiteFixture({ context: { operatorContact: 'https://help.example.org/<me>' } });
    assert.match(
      (await told.browser().get('/forgotten-password')).html,
      /href="https:\/\/help.example.org\/&#60;me&#62;"/,
    );
    await told.close();
  });

  test('a right password alone leaves a person with a second factor waiting, for five minutes', async () => {
    const { context, api } = fixture;
    const account = await fixture.account('careful');
    const sessions: WebsiteFixture['context']['sessions'] = context.sessions;
    const waiting = await createWebsiteFixture({
      context: { ...context },
      sessions,
      rooms: [
        {
          routes(site) {
            site.publicForm('/begin', async (visit) => {
              await visit.session.awaitSecondFactor({ account, epoch: 0, next: '/settings' });
              return redirectTo('/state');
            });
            site.publicForm('/finish', async (visit) => {
              if (visit.pending === null) return redirectTo('/sign-in');
              await visit.session.signIn(visit.pending);
              return redirectTo(visit.pending.next);
            });
            site.publicForm('/keep', async (visit, fields) => {
              await visit.session.keep('challenge', fields.text('challenge'));
              return redirectTo('/state');
            });
            site.publicPage('/state', async (visit) => ({
              kind: 'content',
              status: 200,
              headers: { 'content-type': 'text/plain' },
              body: `${JSON.stringify([visit.person, visit.pending, visit.session.kept('challenge')])} name="_csrf" value="${visit.csrf()}"`,
            }));
            site.page('/settings', async () => ({ kind: 'content', status: 200, headers: {}, body: 'in' }));
          },
        },
      ],
    });
    const browser = waiting.browser();
    await browser.submit('/begin', {}, '/state');
    const first = browser.cookies.get('strata_session');
    assert.match((await browser.get('/state')).html, /^\[null,\{"account":".*"next":"\/settings"/);
    assert.equal((await browser.get('/settings')).location, '/sign-in/verify-mfa');
    await browser.submit('/keep', { challenge: 'abc' }, '/state');
    assert.match((await browser.get('/state')).html, /,"abc"\]/);
    const bound = SESSION_KEPT_LENGTH_MAX - JSON.stringify({ next: '/settings', challenge: '' }).length;
    assert.equal((await browser.submit('/keep', { challenge: 'x'.repeat(bound) }, '/state')).status, 303);
    assert.equal((await browser.submit('/keep', { challenge: 'x'.repeat(bound + 1) }, '/state')).status, 500);
    const late = waiting.browser();
    for (const [name, value] of browser.cookies) late.cookies.set(name, value);
    await browser.submit('/finish', {}, '/state');
    assert.notEqual(browser.cookies.get('strata_session'), first);
    assert.equal((await browser.get('/settings')).html, 'in');
    assert.match((await browser.get('/state')).html, /,null,null\]/);
    // The session that waited is gone with its id.
    assert.match((await late.get('/state')).html, /^\[null,null,null\]/);
    await browser.submit('/begin', {}, '/state');
    api.clock.advance(5 * 60_000 - 1);
    assert.match((await browser.get('/state')).html, /"next":"\/settings"/);
    api.clock.advance(1);
    assert.match((await browser.get('/state')).html, /^\[null,null,null\]/);
    await waiting.close();
  });
});
