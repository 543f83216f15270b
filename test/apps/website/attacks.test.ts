/** Attacks on the website's sessions, forms and pages. Each test opens with its attack; sessions are on PostgreSQL. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { createPostgresSessionStore } from '../../../adapters/postgres/session-store.ts';
import { NEXT_PATH_LENGTH_MAX } from '../../../apps/website/layout/answer.ts';
import { KNOWN_ACCOUNTS_MAX } from '../../../apps/website/sessions/known-browser.ts';
import { changePassword } from '../../../core/use-cases/accounts/accounts.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { csrfTokenOf } from '../../support/form-browser.ts';
import { keepLog } from '../../support/log.ts';
import { type TestDatabase, testDatabase } from '../../support/postgres.ts';
import { exchange, parseAnswer } from '../../support/raw-http.ts';
import { type Browser, createWebsiteFixture, PASSWORD, type Page, type WebsiteFixture } from '../../support/website.ts';

const XSS = '"><script>alert(1)</script>';

describe('The website withstands', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let fixture: WebsiteFixture;

  beforeAll(async () => {
    database = await testDatabase();
    pool = createPool({ connectionString: database.connectionString, log: keepLog() });
    fixture = await createWebsiteFixture({ sessions: createPostgresSessionStore(pool) });
  });
  afterAll(async () => {
    await fixture.close();
    await pool.end();
    await database.close();
  });

  const signIn = async (login: string, browser = fixture.browser()): Promise<Browser> => {
    const { status } = await browser.submit('/sign-in', { login, password: PASSWORD });
    assert.equal(status, 303);
    return browser;
  };
  const isIn = async (browser: Browser): Promise<boolean> => (await browser.get('/settings')).status === 200;
  const rows = async (): Promise<number> => (await pool.query('SELECT FROM web_sessions')).rowCount ?? 0;

  test('session fixation: an attacker plants a session id, and the victim signs in with it', async () => {
    await fixture.account('fix');
    const planted = 'A'.repeat(32);
    const victim = fixture.browser();
    victim.cookies.set('strata_session', planted);
    await signIn('fix', victim);
    assert.notEqual(victim.cookies.get('strata_session'), planted);
    const attacker = fixture.browser();
    attacker.cookies.set('strata_session', planted);
    assert.deepEqual([await isIn(victim), await isIn(attacker)], [true, false]);
  });

  test("session fixation: the victim signs in over the attacker's own session, whose id then lets nobody in", async () => {
    await fixture.account('thief');
    await fixture.account('prey');
    const attacker = await signIn('thief');
    const shared = fixture.browser();
    for (const [name, value] of attacker.cookies) shared.cookies.set(name, value);
    await shared.submit('/sign-out', {}, '/settings');
    await signIn('prey', shared);
    assert.equal(await isIn(attacker), false);
  });

  test('a copied cookie after the sign-out, a revocation, or a change of the password by the operator', async () => {
    const account = await fixture.account('copied');
    const copyOf = (browser: Browser): Browser => {
      const copy = fixture.browser();
      for (const [name, value] of browser.cookies) copy.cookies.set(name, value);
      return copy;
    };
    const first = await signIn('copied');
    const copy = copyOf(first);
    await first.submit('/sign-out', {}, '/settings');
    assert.equal(await isIn(copy), false);
    const second = await signIn('copied');
    await fixture.context.sessions.revokeOthers(account, randomUUID());
    assert.equal(await isIn(second), false);
    const third = await signIn('copied');
    const cause = {
      actor: { kind: 'admin', id: 'test' },
      requestId: 'r',
      sourceAddressRef: null,
      causationId: null,
    } as const;
    await changePassword(fixture.context, { account, cause }, 'another long password');
    assert.equal(await isIn(third), false);
  });

  test('a thief of the table of sessions, which holds no id that a cookie could carry', async () => {
    await fixture.account('table');
    const id = (await signIn('table')).cookies.get('strata_session') ?? '';
    const { rows: stored } = await pool.query('SELECT web_sessions::text AS text FROM web_sessions');
    assert.ok(stored.length > 0 && id.length === 32);
    for (const { text } of stored) {
      assert.ok(!text.includes(id) && !text.includes('table@example.org') && !text.includes('127.0.0.1'));
      const [hash = ''] = /[0-9a-f]{64}/.exec(text) ?? [];
      const thief = fixture.browser();
      thief.cookies.set('strata_session', hash);
      assert.equal(await isIn(thief), false);
    }
  });

  test('strangers who load pages and send forms to fill the table of sessions', async () => {
    const before = await rows();
    const stranger = fixture.browser();
    for (const path of ['/', '/sign-in', '/sign-up', '/nothing', '/settings']) await stranger.get(path);
    await stranger.submit('/sign-in', { login: 'nobody', password: 'a wrong password' });
    stranger.cookies.set('strata_session', 'x'.repeat(8_000));
    await stranger.get('/');
    assert.equal(await rows(), before);
  });

  test('cross-site request forgery: a form without a token, or with one of another session or browser', async () => {
    await fixture.account('forged');
    await fixture.account('forger');
    const victim = await signIn('forged');
    const attacker = await signIn('forger');
    const foreign = csrfTokenOf(await attacker.get('/settings'));
    const stranger = csrfTokenOf(await fixture.browser().get('/sign-in'));
    const origin = { origin: 'http://localhost:8080' };
    for (const token of [undefined, '', 'x', foreign, stranger]) {
      const fields = token === undefined ? {} : { _csrf: token };
      const refused = await victim.post('/settings/sessions/revoke-others', fields, origin);
      assert.equal(refused.status, 403, token);
      assert.match(refused.html, /<h1>This form is out of date<\/h1>/);
    }
    assert.equal(await isIn(victim), true);
  });

  test('a form that is out of date leads back to its page, or to the sign-in page and from there back', async () => {
    await fixture.account('returning');
    const person = await signIn('returning');
    const origin = 'http://localhost:8080';
    const from = `${origin}/settings/password?x=1`;
    const old = await person.post('/settings/password', { _csrf: 'old' }, { origin, referer: from });
    assert.equal(old.status, 403);
    assert.match(old.html, /<a class="button" href="\/settings\/password\?x&#61;1">Go to the page of the form<\/a>/);
    const stranger = fixture.browser();
    const out = await stranger.post('/settings/password', { _csrf: 'old' }, { origin, referer: from });
    assert.match(out.html, /You are not signed in any more/);
    assert.match(out.html, /href="\/sign-in\?next&#61;%2Fsettings%2Fpassword%3Fx%3D1">Go to the sign-in page/);
    const again = await stranger.post(
      '/sign-in',
      { _csrf: 'old' },
      { origin, referer: `${origin}/sign-in?next=%2Fnew` },
    );
    assert.match(again.html, /href="\/sign-in\?next&#61;%2Fnew">Go to the page of the form/);
    // The attack: a page that names another one as the page of its form leads there.
    for (const referer of [
      'https://evil.example/settings',
      'http://localhost:8080//evil.example',
      'javascript:x',
      'x',
    ]) {
      const led = await person.post('/settings/password', { _csrf: 'old' }, { origin, referer });
      assert.match(led.html, /<a class="button" href="\/">Go to the start page<\/a>/, referer);
    }
  });

  test('a planted token: the cookie and the token of the attacker, in the session of the victim', async () => {
    await fixture.account('planted');
    await fixture.account('planter');
    const victim = await signIn('planted');
    const attacker = await signIn('planter');
    const token = csrfTokenOf(await attacker.get('/settings'));
    victim.cookies.set('strata_form', attacker.cookies.get('strata_form') ?? '');
    const refused = await victim.post('/sign-out', { _csrf: token }, { origin: 'http://localhost:8080' });
    assert.equal(refused.status, 403);
    assert.equal(await isIn(victim), true);
  });

  test('cross-site request forgery with a stolen token: the headers of the browser name another site', async () => {
    await fixture.account('stolen');
    const victim = await signIn('stolen');
    const token = csrfTokenOf(await victim.get('/settings'));
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'http://localhost:8081' },
      { origin: 'http://localhost.evil.example:8080' },
      { origin: 'file://localhost:8080' },
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
      { origin: 'null', 'sec-fetch-site': 'same-site' },
      { origin: 'http://localhost:8080', 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'nonsense' },
      { 'sec-fetch-site': '' },
      { 'sec-fetch-site': 'same-origin, cross-site' },
    ]) {
      const refused = await victim.post('/sign-out', { _csrf: token }, headers);
      assert.equal(refused.status, 403, JSON.stringify(headers));
      assert.match(refused.html, /<h1>This form came from another site<\/h1>/);
    }
    assert.equal(await isIn(victim), true);
    const own = { origin: 'http://localhost:8080', 'sec-fetch-site': 'same-origin' };
    assert.equal((await victim.post('/sign-out', { _csrf: token }, own)).status, 303);
  });

  test('cross-site request forgery with headers that name no other site: the token decides', async () => {
    await fixture.account('referrerless');
    for (const headers of [
      {},
      { origin: 'null' },
      { origin: 'null', 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
      { origin: 'http://inner.example:8080', 'sec-fetch-site': 'same-origin' },
    ]) {
      const victim = await signIn('referrerless');
      const token = csrfTokenOf(await victim.get('/settings'));
      const sent = JSON.stringify(headers);
      for (const wrong of [{}, { _csrf: `${token}x` }, { _csrf: '' }]) {
        const refused = await victim.post('/sign-out', wrong, headers);
        assert.equal(refused.status, 403, sent);
        assert.match(refused.html, /<h1>This form is out of date<\/h1>/);
      }
      assert.equal(await isIn(victim), true);
      assert.equal((await victim.post('/sign-out', { _csrf: token }, headers)).status, 303, sent);
    }
  });

  test('a link or an image that signs somebody out or changes something: no GET does', async () => {
    await fixture.account('linked');
    const victim = await signIn('linked');
    for (const path of ['/sign-out', '/settings/sessions/revoke-others', '/sign-in/reopen']) await victim.get(path);
    assert.equal(await isIn(victim), true);
  });

  test('scripts and plain HTTP that reach for the cookie', async () => {
    await fixture.account('cookies');
    const https = await createWebsiteFixture({
      context: { addresses: () => ({ baseUrl: 'https://git.example.org', webUrl: 'https://git.example.org' }) },
    });
    await https.account('cookies');
    const secure = https.browser();
    const signedIn = await secure.submit('/sign-in', { login: 'cookies', password: PASSWORD });
    const flash = await secure.submit('/sign-out', {}, '/settings');
    const set = [...signedIn.setCookies, ...flash.setCookies].filter((header) => !/=;/.test(header));
    const names = ['browser', 'flash', 'session'].map((name) => `__Host-strata_${name}`);
    assert.deepEqual([...new Set(set.map((header) => header.replace(/=.*/, '')))].sort(), names);
    for (const header of set) {
      for (const attribute of ['Path=/', 'HttpOnly', 'Secure', 'SameSite=Lax'])
        assert.ok(header.includes(`; ${attribute}`), header);
      assert.ok(!/domain/i.test(header), header);
    }
    await https.close();
    // Browsers drop the prefix and Secure on plain HTTP, so a service without TLS has neither.
    const plain = await fixture.browser().submit('/sign-in', { login: 'cookies', password: PASSWORD });
    const [session = ''] = plain.setCookies.filter((header) => header.startsWith('strata_session='));
    assert.match(session, /; HttpOnly; SameSite=Lax/);
    assert.doesNotMatch(session, /Secure/);
  });

  test('a proxy that ends TLS: the session cookie is set as the settings say', async () => {
    const https = await createWebsiteFixture({
      context: { addresses: () => ({ baseUrl: 'https://git.example.org', webUrl: 'https://git.example.org' }) },
    });
    const browser = await https.signedIn(await https.account('proxied'));
    const page = await browser.get('/settings', { 'x-forwarded-proto': 'http' });
    assert.equal(page.status, 200);
    assert.match(String(page.headers['strict-transport-security']), /max-age=\d{8}/);
    await https.close();
  });

  test('enumeration at sign-in: an unknown name, a closed account and a wrong password get the same page', async () => {
    await fixture.account('known');
    const pages: string[] = [];
    for (const login of ['known', 'known@example.org', 'unknown', 'unknown@example.org', 'root', '%']) {
      const browser = fixture.browser();
      const refused = await browser.submit('/sign-in', { login, password: 'a wrong password' });
      assert.equal(refused.status, 422);
      pages.push(
        refused.html
          .replaceAll(login, 'LOGIN')
          .replace(/name="_csrf" value="[^"]+"/, '')
          .replaceAll(/[0-9a-f-]{36}/g, ''),
      );
    }
    assert.equal(new Set(pages).size, 1);
  });

  test('guessing: the eleventh wrong password from one network is not compared, even if it is right', async () => {
    await fixture.account('guessed');
    const known = await signIn('guessed');
    await known.submit('/sign-out', {}, '/settings');
    const attacker = fixture.browser();
    for (let guess = 0; guess < 10; guess += 1) {
      const { status } = await attacker.submit('/sign-in', { login: 'guessed', password: `a wrong password ${guess}` });
      assert.equal(status, 422);
    }
    const refused = await attacker.submit('/sign-in', { login: 'guessed', password: PASSWORD });
    assert.equal(refused.status, 429);
    assert.match(String(refused.headers['retry-after']), /^\d+$/);
    assert.match(refused.html, /Too many attempts: try again in .*name="login"[^>]*value="guessed"/s);
    // The browser of the owner has a count of its own, though it shares the network.
    assert.equal(await isIn(await signIn('guessed', known)), true);
  });

  test('guessing with a forged proof of an earlier sign-in, which has no count of its own', async () => {
    await fixture.account('proven');
    await fixture.account('other');
    const other = await signIn('other');
    const proof = other.cookies.get('strata_browser') ?? '';
    assert.match(proof, /^[\w-]{22}\.[\w-]{22}$/);
    // The proof of another account, and guesses at a proof, each with an id that no count has.
    const forged = (count: number): string => `${String(count).padStart(22, '0')}.${proof.split('.')[1]}`;
    const guess = async (cookie: string): Promise<number> => {
      const attacker = fixture.browser();
      attacker.cookies.set('strata_browser', cookie);
      return (await attacker.submit('/sign-in', { login: 'proven', password: 'a wrong password' })).status;
    };
    for (let count = 0; count < 9; count += 1) assert.equal(await guess(forged(count)), 422);
    assert.equal(await guess(proof), 422);
    assert.equal(await guess(forged(10)), 429);
    assert.equal(await guess(proof), 429);
  });

  test('a cookie that grows: a browser is known to the accounts that it signed in to last', async () => {
    const browser = fixture.browser();
    const proofs = (): number => (browser.cookies.get('strata_browser') ?? '').split('.').length - 1;
    for (let count = 1; count <= KNOWN_ACCOUNTS_MAX + 1; count += 1) {
      await fixture.account(`shared-${count}`);
      await signIn(`shared-${count}`, browser);
      assert.equal(proofs(), Math.min(count, KNOWN_ACCOUNTS_MAX));
      await browser.submit('/sign-out', {}, '/settings');
    }
  });

  test('an open redirect: a link to the sign-in page that leads to another site', async () => {
    await fixture.account('led');
    for (const next of [
      'https://evil.example/',
      '//evil.example/',
      '/\\evil.example',
      '\\\\evil.example',
      '/\t/evil.example',
      '/%0d%0aLocation: https://evil.example',
      '/..//evil.example',
      '/.//evil.example',
      'javascript:alert(1)',
      'settings',
      '',
    ]) {
      const form = await fixture.browser().get(`/sign-in?next=${encodeURIComponent(next)}`);
      const sent = await fixture.browser().submit('/sign-in', { login: 'led', password: PASSWORD, next });
      const { location } = sent;
      assert.equal(sent.status, 303, next);
      if (next.includes('%0d')) assert.equal(location, '/led');
      const reached = new URL(location ?? '', 'http://localhost:8080');
      assert.equal(reached.origin, 'http://localhost:8080', next);
      assert.equal(location, '/led', next);
      assert.doesNotMatch(form.html, /name="next"/);
    }
  });

  test('a place to lead on to that fills headers and the table of sessions', async () => {
    await fixture.account('longest');
    for (const [length, location] of [
      [NEXT_PATH_LENGTH_MAX, `/${'n'.repeat(NEXT_PATH_LENGTH_MAX - 1)}`],
      [NEXT_PATH_LENGTH_MAX + 1, '/longest'],
    ] as const) {
      const next = `/${'n'.repeat(length - 1)}`;
      const sent = await fixture.browser().submit('/sign-in', { login: 'longest', password: PASSWORD, next });
      assert.equal(sent.location, location);
      const asked = await fixture.browser().get(`/settings?${'q'.repeat(length - '/settings?'.length)}`);
      assert.equal(asked.location?.includes('next='), length === NEXT_PATH_LENGTH_MAX);
    }
  });

  test('stored scripts in the fields of forms and in the name of a browser', async () => {
    await fixture.account('scripted');
    const browser = fixture.browser();
    const token = csrfTokenOf(await browser.get('/sign-in'));
    const fields = { _csrf: token, login: 'scripted', password: PASSWORD };
    assert.equal((await browser.post('/sign-in', fields, { 'user-agent': XSS })).status, 303);
    const pages: Page[] = [await browser.get('/settings', { 'user-agent': XSS })];
    assert.match(pages[0]?.html ?? '', /&#34;&#62;&#60;script&#62;alert\(1\)/);
    pages.push(await fixture.browser().submit('/sign-in', { login: XSS, password: XSS, next: XSS }));
    pages.push(await fixture.browser().submit('/sign-up', { username: XSS, email: XSS, password: XSS }));
    pages.push(await browser.submit('/settings/email', { email: XSS, current_password: XSS }));
    pages.push(await browser.submit('/settings/delete', { username: XSS, current_password: XSS }));
    pages.push(await fixture.browser().get(`/sign-in?next=${encodeURIComponent(XSS)}`));
    pages.push(await fixture.browser().get(`/${encodeURIComponent(XSS)}`));
    const planted = fixture.browser();
    planted.cookies.set('strata_flash', encodeURIComponent(`+${XSS}`));
    pages.push(await planted.get('/'));
    for (const { html } of pages) assert.ok(!html.includes('<script>'), html);
  });

  test('scripts in a page all the same, frames around it, and leaks of its address: the headers of every answer', async () => {
    const answers = [
      await fixture.browser().get('/'),
      await fixture.browser().get('/nothing'),
      await fixture.browser().post('/sign-in', {}),
      await (await fixture.signedIn(await fixture.account('framed'))).get('/settings'),
    ];
    for (const { headers } of answers) {
      assert.equal(
        headers['content-security-policy'],
        "default-src 'none';script-src 'self';style-src 'self';img-src 'self';connect-src 'self';form-action 'self';base-uri 'none';frame-ancestors 'none'",
      );
      assert.equal(headers['x-frame-options'], 'DENY');
      assert.equal(headers['x-content-type-options'], 'nosniff');
      // With no-referrer, browsers would send forms with the Origin `null`, which says less.
      assert.equal(headers['referrer-policy'], 'same-origin');
      assert.equal(headers['cache-control'], 'no-store');
      assert.match(String(headers['x-request-id']), /^[0-9a-f-]{36}$/);
    }
  });

  test('large forms, forms of another type, and NUL bytes', async () => {
    await fixture.account('bounds');
    const browser = await signIn('bounds');
    const token = csrfTokenOf(await browser.get('/settings/email'));
    const origin = { origin: 'http://localhost:8080' };
    const sized = (bytes: number): Promise<Page> => {
      const rest = new URLSearchParams({ _csrf: token, email: '' }).toString().length;
      return browser.post('/settings/email', { _csrf: token, email: 'e'.repeat(bytes - rest) }, origin);
    };
    assert.equal((await sized(64 * 1024)).status, 422);
    const refused = await sized(64 * 1024 + 1);
    assert.equal(refused.status, 413);
    assert.match(refused.html, /<h1>This form is too large<\/h1>/);
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
      const { status } = await browser.post('/settings/email', { _csrf: token }, { ...origin, 'content-type': type });
      assert.ok(status === 400 || status === 403, type);
    }
    const fields = { _csrf: token, email: 'a\0b@example.org', current_password: PASSWORD };
    const nul = await browser.follow(await browser.post('/settings/email', fields, origin));
    assert.match(nul.html, /<dd>a\uFFFDb@example.org<\/dd>/);
  });

  test('requests that a proxy may read otherwise, and methods that no page has', async (context) => {
    const own = await createWebsiteFixture();
    cleanUp(context, () => own.close());
    const port = Number(new URL(await own.site.listen({ port: 0, host: '127.0.0.1' })).port);
    const answer = async (lines: readonly string[]) =>
      parseAnswer(await exchange(port, [...lines, 'Connection: close', '', ''].join('\r\n')));
    const twoHosts = await answer(['GET / HTTP/1.1', 'Host: localhost', 'Host: evil.example']);
    assert.deepEqual([twoHosts.status, twoHosts.headers['connection']], [400, 'close']);
    assert.equal(twoHosts.headers['x-content-type-options'], 'nosniff');
    for (const [line, refused, title] of [
      ['PUT /sign-in', 405, 'Method not allowed'],
      ['DELETE /settings', 405, 'Method not allowed'],
      ['OPTIONS /', 405, 'Method not allowed'],
      ['GET http://evil.example/', 404, 'Page not found'],
      ['OPTIONS *', 404, 'Page not found'],
    ] as const) {
      const { status, headers, body } = await answer([`${line} HTTP/1.1`, 'Host: localhost']);
      assert.equal(status, refused, line);
      assert.match(headers['content-security-policy'] ?? '', /^default-src 'none'/);
      assert.match(body, new RegExp(`<h1>${title}</h1>`));
    }
  });

  test('secrets in the log: nothing that a person typed is in a line about a request', async () => {
    const canary = 'canary-7f3a';
    await fixture.browser().submit('/sign-in', { login: canary, password: canary, next: `/${canary}` });
    await fixture.browser().get(`/sign-in?next=/${canary}`, { cookie: `strata_session=${canary}` });
    const lines = JSON.stringify([fixture.finished, fixture.api.logged]);
    assert.ok(fixture.finished.length > 0 && !lines.includes(canary));
  });
});
