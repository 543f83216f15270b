/** The pages of second factors, and the second step of a sign-in, as people and attackers use them. */
import assert from 'node:assert/strict';
import decodeQr from 'qr/decode.js';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { CODE_LENGTH_MAX } from '../../../apps/website/mfa/code-field.ts';
import { PENDING_SIGN_IN_SPAN_MS } from '../../../apps/website/sessions/browser-sessions.ts';
import { MFA_ENROLMENT_SPAN_MS } from '../../../core/account/mfa/state.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { MFA_TOKENS_MAX, PASSKEY_CHALLENGE_SPAN_MS } from '../../../core/kernel/limits.ts';
import { SIGN_IN_FAILURES_PAIR_MAX } from '../../../core/use-cases/callers/password-guesses.ts';
import { listMfaTokens, resetMfa } from '../../../core/use-cases/signing-in/mfa-tokens.ts';
import { enrolPasskey, enrolTotp, ORIGIN, owner } from '../../support/mfa.ts';
import { keyIn, optionsIn } from '../../support/mfa-pages.ts';
import { createSoftwareAuthenticator } from '../../support/software-authenticator.ts';
import { codeAt } from '../../support/totp-app.ts';
import { type Browser, createWebsiteFixture, PASSWORD, type WebsiteFixture } from '../../support/website.ts';

const VERIFY = '/sign-in/verify-mfa';

describe('Second factors', () => {
  let fixture: WebsiteFixture;
  let ada: AccountId;
  let browser: Browser;
  let accounts = 0;

  beforeAll(async () => {
    fixture = await createWebsiteFixture();
  });
  afterAll(() => fixture.close());

  beforeEach(async () => {
    accounts += 1;
    ada = await fixture.account(name());
    browser = await fixture.signedIn(ada);
  });

  const name = (): string => `ada-${accounts}`;
  const node = () => ({ ...fixture.context, clock: fixture.api.clock });
  const now = () => fixture.api.clock.now();
  const tokens = () => listMfaTokens(fixture.context, ada);
  const confirmed = { current_password: PASSWORD };

  /** Gives the password with another browser, which then waits for the second factor. */
  async function halfSignedIn(next = '/settings'): Promise<Browser> {
    const other = fixture.browser();
    const sent = await other.submit('/sign-in', { login: name(), password: PASSWORD, next });
    assert.deepEqual([sent.status, sent.location], [303, VERIFY]);
    return other;
  }

  const isIn = async (who: Browser): Promise<boolean> => (await who.get('/settings')).status === 200;

  describe('that are authenticator apps', () => {
    test('are added with a QR code and the key as text, and activated by a code, without scripts', async () => {
      const shown = await browser.submit('/mfa-tokens/add/app', { name: 'Phone', ...confirmed });
      assert.equal(shown.status, 200);
      const seed = keyIn(shown);
      assert.match(seed, /^[A-Z2-7]{32}$/);
      assert.equal(textOfQr(shown.html), hrefIn(shown.html));
      assert.ok(hrefIn(shown.html).includes(`secret=${seed}`));
      assert.ok(!/ style=|<style|onclick/.test(shown.html) && shown.html.length < 60_000);
      const [pending] = await tokens();
      assert.match((await browser.get('/mfa-tokens')).html, /Phone<\/a>.*pending/s);
      const sent = await browser.submit(
        `/mfa-tokens/${pending?.id}/activate`,
        { code: ` ${codeAt(seed, now()).replace(/^.{3}/, '$& ')}` },
        `/mfa-tokens/${pending?.id}`,
      );
      assert.deepEqual([sent.status, sent.location], [303, '/mfa-tokens']);
      assert.match((await browser.follow(sent)).html, /Phone is active.*<span class="mark good">active/s);
      assert.doesNotMatch((await browser.get(`/mfa-tokens/${pending?.id}`)).html, new RegExp(seed));
    });

    test('take a code as people and their keyboards type it, on a keyboard of digits', async () => {
      const arabic = (code: string) => code.replaceAll(/\d/g, (digit) => String.fromCodePoint(0x660 + Number(digit)));
      const wide = (code: string) => code.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));
      const double = (code: string) => code.replaceAll(/\d/g, (digit) => String.fromCodePoint(0x1d7d8 + Number(digit)));
      const parted = (part: string) => (code: string) => code.replace(/^.{3}/, `$&${part}`);
      const longest = ' '.repeat(CODE_LENGTH_MAX - 6);
      const parts = ['-', '\u2011', '\u00a0', '\u200e - ', longest];
      for (const typed of [arabic, wide, double, ...parts.map(parted)]) {
        const seed = keyIn(await browser.submit('/mfa-tokens/add/app', { name: 'Phone', ...confirmed }));
        const [pending] = await tokens();
        const page = `/mfa-tokens/${pending?.id}`;
        assert.match((await browser.get(page)).html, /<input id="code"[^>]* inputmode="numeric"/);
        if (typed === arabic) {
          const code = parted(`${longest} `)(codeAt(seed, now()));
          assert.equal((await browser.submit(`${page}/activate`, { code }, page)).status, 422);
        }
        const code = typed(codeAt(seed, now()));
        assert.equal((await browser.submit(`${page}/activate`, { code }, page)).status, 303, JSON.stringify(code));
        await browser.submit(`${page}/delete`, confirmed, page);
      }
    });

    test('are not activated by a wrong code, which is said beside the field', async () => {
      await browser.submit('/mfa-tokens/add/app', { name: 'Phone', ...confirmed });
      const path = `/mfa-tokens/${(await tokens())[0]?.id}`;
      const refused = await browser.submit(`${path}/activate`, { code: '000000' }, path);
      assert.equal(refused.status, 422);
      assert.match(refused.html, /<p class="wrong" id="code-error">This code is wrong/);
      assert.equal((await tokens())[0]?.status, 'pending');
    });

    // The attack: who finds a signed-in browser finishes later what its person began with the password.
    test('are activated within the hour, which their page says, or never', async () => {
      for (const kind of ['app', 'passkey']) {
        const begun = await browser.submit(`/mfa-tokens/add/${kind}`, { name: `My ${kind}`, ...confirmed });
        const token = (await tokens()).at(-1);
        const path = `/mfa-tokens/${token?.id}`;
        fixture.api.clock.advance(MFA_ENROLMENT_SPAN_MS - 1);
        assert.match((await browser.get(path)).html, new RegExp(`action="${path}/activate"`));
        const code = kind === 'app' ? codeAt(keyIn(begun), now()) : '';
        fixture.api.clock.advance(1);
        const shown = (await browser.get(path)).html;
        assert.match(shown, /The time to activate this token ended/);
        assert.doesNotMatch(shown, new RegExp(`${path}/activate|data-passkey`));
        const late = await browser.submit(`${path}/activate`, { code, answer: '{}' }, path);
        assert.equal(late.status, 422);
        assert.equal((await tokens()).at(-1)?.status, 'pending');
        assert.match((await browser.get('/mfa-tokens')).html, /too late/);
      }
      assert.match((await browser.get('/mfa-tokens')).html, /href="\/mfa-tokens\/add\/passkey"/);
    });

    // The attack: who finds a signed-in browser adds a second factor of their own, or removes the person's.
    test('are added and deleted only with the password', async () => {
      for (const password of ['', 'wrong horse battery'])
        for (const kind of ['app', 'passkey']) {
          const sent = { name: 'Phone', current_password: password };
          const refused = await browser.submit(`/mfa-tokens/add/${kind}`, sent);
          assert.equal(refused.status, 422);
          assert.match(refused.html, /id="current_password-error".*/);
          assert.match(refused.html, /value="Phone"/);
        }
      const { id } = await enrolTotp(node(), ada);
      const again = await fixture.signedIn(ada);
      const refused = await again.submit(`/mfa-tokens/${id}/delete`, { current_password: 'no' }, `/mfa-tokens/${id}`);
      assert.equal(refused.status, 422);
      assert.equal((await tokens()).length, 1);
    });

    test('are renamed and deleted; the person stays signed in, every other browser does not', async () => {
      const { id } = await enrolTotp(node(), ada);
      const [one, two] = [await fixture.signedIn(ada), await fixture.signedIn(ada)];
      const before = one.cookies.get('strata_session');
      const renamed = await one.submit(`/mfa-tokens/${id}/rename`, { name: '<b>Tablet</b>' }, `/mfa-tokens/${id}`);
      const list = (await one.follow(renamed)).html;
      assert.ok(list.includes('&#60;b&#62;Tablet&#60;/b&#62;') && !list.includes('<b>Tablet'));
      assert.equal(await isIn(two), true);
      const deleted = await one.submit(`/mfa-tokens/${id}/delete`, confirmed, `/mfa-tokens/${id}`);
      assert.match((await one.follow(deleted)).html, /is deleted.*No MFA tokens yet/s);
      assert.notEqual(one.cookies.get('strata_session'), before);
      assert.deepEqual([await isIn(one), await isIn(two)], [true, false]);
    });

    // The attack: the ids of another person's tokens.
    test('of one person do not exist for another', async () => {
      const { id } = await enrolTotp(node(), ada);
      const eve = await fixture.signedIn(await fixture.account(`eve-${accounts}`));
      assert.equal((await eve.get(`/mfa-tokens/${id}`)).status, 404);
      for (const form of ['rename', 'delete', 'activate']) {
        const sent = { name: 'x', code: '000000', ...confirmed };
        assert.equal((await eve.submit(`/mfa-tokens/${id}/${form}`, sent, '/settings/password')).status, 404);
      }
      assert.equal((await eve.get('/mfa-tokens/no-id')).status, 404);
      assert.equal((await fixture.browser().get('/mfa-tokens')).location, '/sign-in?next=%2Fmfa-tokens');
    });

    // The attack: a sixth token.
    test('are at most five, which the page says before and after', async () => {
      for (let n = 0; n < MFA_TOKENS_MAX - 1; n += 1) await enrolTotp(node(), ada, `app ${n}`);
      browser = await fixture.signedIn(ada);
      assert.match(
        (await browser.get('/mfa-tokens')).html,
        /You have 4 of at most 5 tokens.*Add an authenticator app/s,
      );
      const form = await browser.get('/mfa-tokens/add/app');
      assert.equal(form.status, 200);
      await browser.submit('/mfa-tokens/add/app', { name: 'fifth', ...confirmed });
      const full = (await browser.get('/mfa-tokens')).html;
      assert.match(full, /You have 5 of at most 5.*Delete a token before you add another/s);
      assert.doesNotMatch(full, /href="\/mfa-tokens\/add/);
      const sixth = await browser.submit('/mfa-tokens/add/app', { name: 'sixth', ...confirmed });
      assert.equal(sixth.status, 422);
      assert.match(sixth.html, /An account has at most 5 MFA tokens/);
      assert.equal((await tokens()).length, 5);
    });
  });

  describe('that are passkeys', () => {
    test('are added in the browser, with the scripts of the page and nothing inline', async () => {
      const authenticator = createSoftwareAuthenticator({ origin: ORIGIN });
      const begun = await browser.submit('/mfa-tokens/add/passkey', { name: 'Key', ...confirmed });
      const shown = await browser.follow(begun);
      assert.match(shown.html, /data-passkey="create"/);
      assert.match(shown.html, /<noscript>/);
      const scripts = [...shown.html.matchAll(/src="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
      assert.deepEqual(
        scripts.map((path) => path.split('.')[0]),
        ['/assets/page', '/assets/webauthn', '/assets/passkeys'],
      );
      for (const path of scripts) assert.equal((await browser.get(path)).status, 200, path);
      const answer = authenticator.create(optionsIn(shown));
      const path = begun.location ?? '';
      const sent = await browser.submit(`${path}/activate`, { answer }, path);
      assert.deepEqual([sent.status, sent.location], [303, '/mfa-tokens']);
      assert.equal((await tokens())[0]?.status, 'active');
    });

    // The attack: a second pending passkey.
    test('are pending one at a time, which the page says before it is hit', async () => {
      await browser.submit('/mfa-tokens/add/passkey', { name: 'First', ...confirmed });
      const list = (await browser.get('/mfa-tokens')).html;
      assert.match(list, /The passkey <a[^>]*>First<\/a> is pending/);
      assert.doesNotMatch(list, /href="\/mfa-tokens\/add\/passkey"/);
      const second = await browser.submit('/mfa-tokens/add/passkey', { name: 'Second', ...confirmed });
      assert.equal(second.status, 422);
      assert.match(second.html, /Only one passkey can be pending at a time/);
    });

    // The attack: an answer of another origin, of an old page, or sent twice.
    test('are not activated by an answer that does not hold, and the page offers another try', async () => {
      const authenticator = createSoftwareAuthenticator({ origin: ORIGIN });
      const begun = await browser.submit('/mfa-tokens/add/passkey', { name: 'Key', ...confirmed });
      const path = begun.location ?? '';
      const wrong = authenticator.create(optionsIn(await browser.get(path)), { origin: 'https://evil.example' });
      const refused = await browser.submit(`${path}/activate`, { answer: wrong }, path);
      assert.equal(refused.status, 422);
      assert.match(refused.html, /The passkey could not be verified/);
      assert.match(refused.html, /data-passkey="create"/);
      const old = authenticator.create(optionsIn(refused));
      fixture.api.clock.advance(PASSKEY_CHALLENGE_SPAN_MS);
      assert.match((await browser.submit(`${path}/activate`, { answer: old }, path)).html, /used too late/);
      assert.equal((await tokens())[0]?.status, 'pending');
    });

    test('are shown as suspect when their counter went back', async () => {
      const { id, authenticator } = await enrolPasskey(node(), ada);
      const copy = authenticator.clone();
      const first = await halfSignedIn();
      await first.submit(VERIFY, { answer: authenticator.get(optionsIn(await first.get(VERIFY))) });
      const second = await halfSignedIn();
      const answer = copy.get(optionsIn(await second.get(VERIFY)));
      const refused = await second.submit(VERIFY, { answer });
      assert.match(refused.html, /The counter of this passkey went back/);
      assert.equal(await isIn(second), false);
      assert.match((await first.get('/mfa-tokens')).html, /may be copied/);
      assert.match((await first.get(`/mfa-tokens/${id}`)).html, /may have been copied/);
    });

    test('are not offered where browsers offer none, and the page says why', async () => {
      const passkeys = { ...fixture.context.passkeys, available: false };
      const plain = await createWebsiteFixture({ context: { passkeys } });
      const bob = await plain.signedIn(await plain.account('bob'));
      const list = (await bob.get('/mfa-tokens')).html;
      assert.match(list, /Browsers offer passkeys only on HTTPS/);
      assert.doesNotMatch(list, /href="\/mfa-tokens\/add\/passkey"/);
      await plain.close();
    });
  });

  describe('at sign-in', () => {
    test('are asked for after the password, by code, and lead to where the person wanted to go', async () => {
      const { seed } = await enrolTotp(node(), ada);
      const other = await halfSignedIn();
      assert.equal(await isIn(other), false);
      const step = await other.get(VERIFY);
      assert.match(step.html, /autocomplete="one-time-code"/);
      assert.doesNotMatch(step.html, /data-passkey/);
      const before = other.cookies.get('strata_session');
      const sent = await other.submit(VERIFY, { code: codeAt(seed, now()) });
      assert.deepEqual([sent.status, sent.location], [303, '/settings']);
      assert.notEqual(other.cookies.get('strata_session'), before);
      assert.equal(await isIn(other), true);
    });

    test('are asked for by passkey too', async () => {
      const { authenticator } = await enrolPasskey(node(), ada);
      const other = await halfSignedIn();
      const step = await other.get(VERIFY);
      assert.doesNotMatch(step.html, /one-time-code/);
      const sent = await other.submit(VERIFY, { answer: authenticator.get(optionsIn(step)) });
      assert.equal(sent.location, '/settings');
      assert.equal(await isIn(other), true);
    });

    // The attack: the second step is skipped, by its own address or with the session of the first step.
    test('cannot be skipped', async () => {
      await enrolTotp(node(), ada);
      const other = await halfSignedIn();
      for (const path of ['/settings', '/mfa-tokens', '/settings/password'])
        assert.equal((await other.get(path)).location, VERIFY, path);
      assert.equal((await other.submit('/settings/sessions/revoke-others', {}, VERIFY)).location, VERIFY);
      assert.equal((await fixture.browser().get(VERIFY)).location, '/sign-in');
    });

    // The attack: a code that was seen once is used in another browser.
    test('work once', async () => {
      const { seed } = await enrolTotp(node(), ada);
      const [one, two] = [await halfSignedIn(), await halfSignedIn()];
      const code = codeAt(seed, now());
      assert.equal((await one.submit(VERIFY, { code })).status, 303);
      const refused = await two.submit(VERIFY, { code });
      assert.equal(refused.status, 422);
      assert.match(refused.html, /This code was used already/);
      assert.equal(await isIn(two), false);
    });

    // The attack: a browser that was left at the second step is used later.
    test('are accepted for five minutes after the password', async () => {
      const { seed } = await enrolTotp(node(), ada);
      const [early, late] = [await halfSignedIn(), await halfSignedIn()];
      const token = await late.get(VERIFY);
      fixture.api.clock.advance(PENDING_SIGN_IN_SPAN_MS - 1);
      assert.equal((await early.submit(VERIFY, { code: codeAt(seed, now()) })).location, '/settings');
      fixture.api.clock.advance(30_000);
      const [, csrf = ''] = /name="_csrf" value="([^"]+)"/.exec(token.html) ?? [];
      const sent = await late.post(VERIFY, { _csrf: csrf, code: codeAt(seed, now()) }, { origin: ORIGIN });
      assert.ok(sent.status === 403 || sent.location === '/sign-in', String(sent.status));
      assert.equal((await late.get(VERIFY)).location, '/sign-in');
      assert.equal(await isIn(late), false);
    });

    // The attack: who knows the password guesses codes.
    test('can be guessed as often as the limit allows; then the answer is 429 with the form', async () => {
      const { seed } = await enrolTotp(node(), ada);
      const other = await halfSignedIn();
      for (let n = 0; n < SIGN_IN_FAILURES_PAIR_MAX; n += 1)
        assert.equal((await other.submit(VERIFY, { code: '000000' })).status, 422);
      const refused = await other.submit(VERIFY, { code: codeAt(seed, now()) });
      assert.equal(refused.status, 429);
      assert.match(String(refused.headers['retry-after']), /^\d+$/);
      assert.match(refused.html, /one-time-code/);
      assert.equal(await isIn(other), false);
    });

    // The attack: a stolen password waits at the second step until an operator has removed the tokens.
    test('do not end a sign-in that began before the tokens were reset', async () => {
      const { seed } = await enrolTotp(node(), ada);
      const other = await halfSignedIn();
      await resetMfa(fixture.context, owner(ada));
      assert.equal((await other.get(VERIFY)).location, '/sign-in');
      const sent = await other.submit('/sign-in', { login: name(), password: PASSWORD });
      assert.equal(sent.location, `/${name()}`);
      assert.equal(codeAt(seed, now()).length, 6);
    });

    test('are asked for before a closed account is opened again', async () => {
      const { seed } = await enrolTotp(node(), ada);
      const one = await fixture.signedIn(ada);
      await one.submit('/settings/delete', { username: name(), ...confirmed });
      const other = await halfSignedIn();
      assert.equal((await other.get('/sign-in/reopen')).location, '/sign-in');
      const sent = await other.submit(VERIFY, { code: codeAt(seed, now()) });
      assert.equal(sent.location, '/sign-in/reopen');
      assert.match((await other.get('/sign-in/reopen')).html, /This account is closed/);
    });

    test('say who helps a person who lost all of them', async () => {
      await enrolTotp(node(), ada);
      assert.match((await (await halfSignedIn()).get(VERIFY)).html, /There are no recovery codes/);
    });
  });
});

function hrefIn(html: string): string {
  const [, href = ''] = /href="(otpauth:[^"]+)"/.exec(html) ?? [];
  return href.replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));
}

/** Draws the SVG and reads the code in it, as a phone does. */
function textOfQr(html: string): string {
  const [, size = '0'] = /viewBox="0 0 (\d+) \1" shape-rendering/.exec(html) ?? [];
  const [, path = ''] = /fill="#000" d="([^"]+)"/.exec(html) ?? [];
  const scale = 4;
  const width = Number(size) * scale;
  const data = new Uint8Array(width * width * 4).fill(255);
  for (const [, x, y, length] of path.matchAll(/M(\d+) (\d+)h(\d+)v1H\d+z/g)) {
    for (let row = Number(y) * scale; row < (Number(y) + 1) * scale; row += 1) {
      for (let column = Number(x) * scale; column < (Number(x) + Number(length)) * scale; column += 1)
        data.fill(0, (row * width + column) * 4, (row * width + column) * 4 + 3);
    }
  }
  return decodeQr({ width, height: width, data });
}
