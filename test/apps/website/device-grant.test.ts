/** The page that lets a device log in: what it shows, what decides, and what a hostile device or site gets from it. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import { type AccountId, type DeviceSessionId, plusMs } from '../../../core/kernel/ids.ts';
import { DEVICE_HOSTNAME_LENGTH_MAX, DEVICE_SESSION_SPAN_MS } from '../../../core/kernel/limits.ts';
import { csrfTokenOf } from '../../support/form-browser.ts';
import { type Browser, createWebsiteFixture, PASSWORD, type WebsiteFixture } from '../../support/website.ts';

/** Long enough that a page's random tokens do not contain it by chance. */
const USERNAME = 'ada-who-decides';
const CHOICE = { name: 'laptop', permissions: 'all', scope: 'ALL_REPO', expiry: 'never', expiry_time: '' };

interface Session {
  readonly id: DeviceSessionId;
  readonly user_code: string;
  readonly secret_token: string;
  readonly verification_url: string;
}

describe('The page that lets a device log in', () => {
  let fixture: WebsiteFixture;
  let ada: AccountId;
  let browser: Browser;
  let webUrl: string;

  beforeEach(async () => {
    fixture = await createWebsiteFixture();
    ({ webUrl } = fixture.context.addresses());
    ada = await fixture.api.account(USERNAME);
    browser = await fixture.signedIn(ada);
  });
  afterEach(() => fixture.close());

  async function begin(hostname = 'build-07'): Promise<Session> {
    const answer = await fixture.api.request('POST', '/v1/auth/sessions', null, { body: { hostname } });
    assert.equal(answer.statusCode, 201, answer.body);
    return answer.json();
  }
  const poll = async ({ id, secret_token }: Session) => {
    fixture.api.clock.advance(2_000);
    return fixture.api.request('GET', `/v1/auth/sessions/${id}/poll?secret_token=${secret_token}`, null);
  };
  const pathOf = ({ verification_url }: Session): string => verification_url.slice(webUrl.length);
  const grant = ({ user_code }: Session, fields: Readonly<Record<string, string | readonly string[]>> = {}) => ({
    decision: 'grant',
    user_code,
    ...CHOICE,
    ...fields,
  });
  async function decisions(): Promise<readonly string[]> {
    const events = await fixture.context.events.readAll(LOG_START, 1_000);
    return events.flatMap(({ type }) => (/^DeviceLogin(Granted|Denied)$/.test(type) ? [type] : []));
  }

  test('shows the code, the host name, the address, the age and the warning', async () => {
    const session = await begin();
    fixture.api.clock.advance(40_000);
    const { status, html } = await browser.get(pathOf(session));
    assert.equal(status, 200);
    assert.match(html, new RegExp(`class="code-large"[^>]*>${session.user_code}<`));
    assert.match(html, /<bdi>build-07<\/bdi>/);
    assert.match(html, /<dd>127\.0\.0\.1<\/dd>/);
    assert.match(html, /40 seconds ago/);
    assert.match(html, /You did not run <code>strata login<\/code> just now\?/);
    assert.match(html, /value="Command line, 2026-11-21"/);
    assert.deepEqual(await decisions(), []);
  });

  test('gives the device its token after Grant', async () => {
    const session = await begin();
    const granted = await browser.submit(
      pathOf(session),
      grant(session, { permissions: 'chosen', grants: 'GIT_HTTP_READ' }),
    );
    assert.match((await browser.follow(granted)).html, /Granted\. Go back to your command line/);
    const polled = await poll(session);
    assert.equal(polled.statusCode, 200);
    const { username, access_token } = polled.json();
    assert.deepEqual([username, access_token.name, access_token.grants], [USERNAME, 'laptop', ['GIT_HTTP_READ']]);
    assert.match((await browser.get('/access-tokens')).html, /<strong>laptop<\/strong>/);
  });

  test('gives the device nothing after Deny', async () => {
    const session = await begin();
    const denied = await browser.submit(pathOf(session), { decision: 'deny', user_code: session.user_code });
    assert.match((await browser.follow(denied)).html, /Denied/);
    assert.equal((await poll(session)).statusCode, 403);
  });

  test('keeps what was entered when the choice is refused, and the device waits on', async () => {
    const session = await begin();
    const refused = await browser.submit(pathOf(session), grant(session, { name: 'mine', scope: 'SELECTED_REPO' }));
    assert.equal(refused.status, 422);
    assert.match(refused.html, /value="mine"/);
    assert.match(refused.html, /Choose at least one repository/);
    assert.equal((await poll(session)).statusCode, 202);
  });

  test('sends who is signed out to sign in and back', async () => {
    const session = await begin();
    await fixture.account('bob');
    const bob = fixture.browser();
    const signIn = `/sign-in?next=${encodeURIComponent(pathOf(session))}`;
    assert.equal((await bob.get(pathOf(session))).location, signIn);
    const [, next = ''] = /name="next" value="([^"]+)"/.exec((await bob.get(signIn)).html) ?? [];
    const fields = { login: 'bob', password: PASSWORD, next: next.replaceAll('&#61;', '=') };
    const signedIn = await bob.submit('/sign-in', fields, signIn);
    assert.equal(signedIn.location, pathOf(session));
    assert.match((await bob.follow(signedIn)).html, new RegExp(session.user_code));
  });

  test('grants nothing by being visited, whatever its address says', async () => {
    // The attack: a link, an image or a prefetch on another page opens an address that decides.
    const session = await begin();
    const more = new URLSearchParams(grant(session)).toString();
    for (const path of [pathOf(session), `${pathOf(session)}&${more}`, `${pathOf(session)}&decision=grant`]) {
      assert.equal((await browser.get(path)).status, 200);
    }
    const head = await fixture.site.inject({ method: 'HEAD', url: `${pathOf(session)}&${more}` });
    assert.notEqual(head.statusCode, 200);
    assert.equal((await poll(session)).statusCode, 202);
    assert.deepEqual(await decisions(), []);
  });

  test('is shown in no frame, so that nobody clicks Grant below another picture', async () => {
    // The attack: another site lays the page, invisible, over a button of its own.
    const session = await begin();
    const { headers } = await browser.get(pathOf(session));
    assert.equal(headers['x-frame-options'], 'DENY');
    assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/);
    assert.match(String(headers['content-security-policy']), /form-action 'self'/);
    assert.equal(headers['cache-control'], 'no-store');
  });

  test('takes no form of another site, none without its token, and none of another person', async () => {
    // The attack: a page of the attacker sends the form from the person's browser, with a token of the attacker's own.
    const session = await begin();
    const fields = grant(session);
    const own = { origin: webUrl, 'sec-fetch-site': 'same-origin' };
    assert.equal((await browser.post(pathOf(session), fields, own)).status, 403);
    const eve = await fixture.signedIn(await fixture.api.account('eve'));
    const strange = csrfTokenOf(await eve.get(pathOf(session)));
    assert.equal((await browser.post(pathOf(session), { ...fields, _csrf: strange }, own)).status, 403);
    const token = csrfTokenOf(await browser.get(pathOf(session)));
    const elsewhere = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    assert.equal((await browser.post(pathOf(session), { ...fields, _csrf: token }, elsewhere)).status, 403);
    assert.deepEqual(await decisions(), []);
  });

  test('takes no code but the one of the session that it shows', async () => {
    // The attack: a form shows the code of one session and decides about another.
    const [shown, other] = [await begin(), await begin('evil')];
    const codes = [other.user_code, '', [shown.user_code, other.user_code]];
    for (const user_code of codes) {
      for (const decision of ['grant', 'deny']) {
        const answer = await browser.submit(pathOf(shown), { ...grant(shown), decision, user_code });
        assert.equal(answer.status, 422);
        assert.match(answer.html, /The code is another one/);
      }
    }
    const undecided = await browser.submit(pathOf(shown), grant(shown, { decision: 'maybe' }));
    assert.equal(undecided.status, 422);
    assert.deepEqual(await decisions(), []);
    assert.deepEqual([(await poll(shown)).statusCode, (await poll(other)).statusCode], [202, 202]);
  });

  test('tells nothing of a session that is unknown, expired, or decided by somebody else', async () => {
    // The attack: somebody opens the session ids that they have seen in links, to learn who logs in where.
    const [decided, expired] = [await begin('private-host'), await begin('private-host')];
    await browser.submit(pathOf(decided), grant(decided));
    const eve = await fixture.signedIn(await fixture.api.account('eve'));
    const expect = async (path: string, status: number): Promise<void> => {
      const shown = await eve.get(path);
      assert.equal(shown.status, status, path);
      for (const secret of ['private-host', '127.0.0.1', USERNAME]) assert.ok(!shown.html.includes(secret), path);
      const sent = await eve.submit(path, grant(decided), '/access-tokens/create');
      assert.equal(sent.status, status, path);
    };
    await expect(pathOf(decided), 409);
    const unknown = fixture.context.ids.next();
    for (const id of [unknown, 'x', '', '%00']) await expect(`/access-tokens/create?auth_session_id=${id}`, 404);
    fixture.api.clock.advance(DEVICE_SESSION_SPAN_MS);
    await expect(pathOf(expired), 410);
    assert.deepEqual(await decisions(), ['DeviceLoginGranted']);
  });

  test('decides at the last moment of a session, and not one later', async () => {
    const [inTime, late] = [await begin(), await begin()];
    fixture.api.clock.advance(DEVICE_SESSION_SPAN_MS - 1);
    assert.equal((await browser.submit(pathOf(inTime), grant(inTime))).status, 303);
    const token = csrfTokenOf(await browser.get(pathOf(late)));
    fixture.api.clock.advance(1);
    const own = { origin: webUrl, 'sec-fetch-site': 'same-origin' };
    assert.equal((await browser.post(pathOf(late), { ...grant(late), _csrf: token }, own)).status, 410);
  });

  test('decides once when two people and two tabs decide at the same time', async () => {
    // The attack: two tabs, or two people with the same link, try to have a login both granted and denied.
    const session = await begin();
    const eve = await fixture.signedIn(await fixture.api.account('eve'));
    // Both browsers have opened the page, so that their tabs share the secret of their forms.
    for (const each of [browser, eve]) await each.get(pathOf(session));
    const answers = await Promise.all([
      browser.submit(pathOf(session), grant(session)),
      browser.submit(pathOf(session), { decision: 'deny', user_code: session.user_code }),
      eve.submit(pathOf(session), grant(session)),
    ]);
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [303, 409, 409],
    );
    assert.equal((await decisions()).length, 1);
  });

  test('shows what a hostile device calls itself as text, with hidden and turned characters visible', async () => {
    // The attack: a device names itself by markup, or by characters that turn the line around.
    const names = ['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', '\u202egnp.exe\u2066', '</dd><form>'];
    for (const name of names) {
      const { html } = await browser.get(pathOf(await begin(name)));
      assert.doesNotMatch(html, /<script>|<img|<form>|[\u202e\u2066\0]/u, name);
      fixture.api.clock.advance(60_000);
    }
    const { html } = await browser.get(pathOf(await begin(names[2])));
    assert.match(html, /<bdi>⟨U\+202E⟩gnp\.exe⟨U\+2066⟩<\/bdi>/);
    const longest = await browser.get(pathOf(await begin('😀'.repeat(DEVICE_HOSTNAME_LENGTH_MAX))));
    assert.equal(longest.status, 200);
  });

  test('gives no token of another account’s repository', async () => {
    // The attack: a forged field names a repository that the person does not own.
    const strangers = await fixture.api.repository(await fixture.api.account('eve'), 'strangers');
    const session = await begin();
    const fields = grant(session, { scope: 'SELECTED_REPO', repository_ids: strangers.id });
    assert.equal((await browser.submit(pathOf(session), fields)).status, 422);
    const widened = grant(session, { scope: ['SELECTED_REPO', 'ALL_REPO'] });
    assert.equal((await browser.submit(pathOf(session), widened)).status, 422);
    assert.equal((await poll(session)).statusCode, 202);
    assert.deepEqual(await decisions(), []);
  });

  test('leaves no host name or address of a device in the log', async () => {
    const session = await begin('adas-own-laptop');
    await browser.submit(pathOf(session), grant(session));
    const events = await fixture.context.events.readAll(LOG_START, 1_000);
    const text = JSON.stringify(events.map(({ position: _position, ...event }) => event));
    for (const personal of ['adas-own-laptop', '127.0.0.1', session.secret_token]) assert.ok(!text.includes(personal));
    assert.ok(text.includes(`"session_expires_at":"${plusMs(fixture.context.clock.now(), DEVICE_SESSION_SPAN_MS)}"`));
  });
});
