/**
 * A server that is killed between any two steps of the enrolment of an MFA token, of its deletion, or of the page that
 * decides a device login leaves nothing half, and the person goes on with the server that starts again.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { systemClock } from '../../adapters/node/clock.ts';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { suiteEnding } from '../support/cleanup.ts';
import type { SiteBrowser, SitePage } from '../support/form-browser.ts';
import { keyIn, optionsIn } from '../support/mfa-pages.ts';
import { until } from '../support/read-models.ts';
import { browserOf } from '../support/site-browser.ts';
import { createSoftwareAuthenticator } from '../support/software-authenticator.ts';
import { type ApiAnswer, admin, api, type Strata } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { codeAt } from '../support/totp-app.ts';

const PASSWORD = 'correct horse battery';
const CONFIRMED = { current_password: PASSWORD };
const VERIFY = '/sign-in/verify-mfa';

interface ListedToken {
  readonly path: string;
  readonly name: string;
  readonly status: string;
}

describe('A server that is killed', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let accounts = 0;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
  });

  /** Does something to a server that dies at the failpoint, and starts it again at the same address. */
  async function dying(point: FailpointName, act: () => Promise<unknown>): Promise<void> {
    const armed = await strata.restart({ STRATA_FAILPOINT: point });
    await assert.rejects(act());
    await armed.exited();
    assert.equal(armed.process.signalCode, 'SIGKILL');
    strata = await strata.restart();
  }

  async function signedUp(): Promise<{ readonly username: string; readonly browser: SiteBrowser }> {
    accounts += 1;
    const username = `person-${accounts}`;
    const browser = browserOf(strata.url);
    const wanted = { username, email: `${username}@example.org`, password: PASSWORD };
    assert.equal((await browser.submit('/sign-up', wanted)).status, 303);
    return { username, browser };
  }

  /** Gives the password with a new browser; returns it with where it was sent. */
  async function passwordGiven(login: string): Promise<{ readonly browser: SiteBrowser; readonly sentTo: string }> {
    const browser = browserOf(strata.url);
    const { status, location } = await browser.submit('/sign-in', { login, password: PASSWORD, next: '/mfa-tokens' });
    assert.equal(status, 303);
    return { browser, sentTo: location ?? '' };
  }

  async function tokensOf(browser: SiteBrowser): Promise<readonly ListedToken[]> {
    const { status, html } = await browser.get('/mfa-tokens');
    assert.equal(status, 200);
    const items = html.matchAll(/<a href="(\/mfa-tokens\/[0-9a-f-]{36})">([^<]*)<\/a> <span class="mark \w+">(\w+)</g);
    return [...items].map(([, path = '', name = '', status = '']) => ({ path, name, status }));
  }

  const activate = (browser: SiteBrowser, path: string, fields: Readonly<Record<string, string>>): Promise<SitePage> =>
    browser.submit(`${path}/activate`, fields, path);
  const remove = (browser: SiteBrowser, path: string): Promise<SitePage> =>
    browser.submit(`${path}/delete`, CONFIRMED, path);
  const addApp = (browser: SiteBrowser, name: string): Promise<SitePage> =>
    browser.submit('/mfa-tokens/add/app', { name, ...CONFIRMED });
  const addPasskey = (browser: SiteBrowser, name: string): Promise<SitePage> =>
    browser.submit('/mfa-tokens/add/passkey', { name, ...CONFIRMED });
  const newAuthenticator = () => createSoftwareAuthenticator({ origin: strata.url });

  /** Adds an app and activates it, as somebody does whose first attempt was cut short. */
  async function enrolApp(browser: SiteBrowser, name: string): Promise<string> {
    const seed = keyIn(await addApp(browser, name));
    const token = (await tokensOf(browser)).find((one) => one.name === name);
    assert.ok(token !== undefined);
    const sent = await activate(browser, token.path, { code: codeAt(seed, systemClock.now()) });
    assert.deepEqual([sent.status, sent.location], [303, '/mfa-tokens']);
    return seed;
  }

  for (const point of ['mfa-seed-stored', 'mfa-enrolment-begun'] as const) {
    test(`at ${point} of an app leaves no factor that signs in, and the person begins again`, async () => {
      const { username, browser } = await signedUp();
      await dying(point, () => addApp(browser, 'Lost'));
      const left = await tokensOf(browser);
      // The key of the token that was begun was shown to nobody.
      const begun = point === 'mfa-enrolment-begun' ? ['pending'] : [];
      assert.deepEqual(
        left.map(({ status }) => status),
        begun,
      );
      assert.equal((await passwordGiven(username)).sentTo, '/mfa-tokens', 'the password is enough');
      for (const { path } of left) assert.equal((await remove(browser, path)).status, 303);
      await enrolApp(browser, 'Phone');
      assert.deepEqual(
        (await tokensOf(browser)).map(({ name, status }) => [name, status]),
        [['Phone', 'active']],
      );
      assert.equal((await passwordGiven(username)).sentTo, VERIFY);
    });
  }

  test('at mfa-token-activated of an app leaves it active, and its code is used up', async () => {
    const { username, browser } = await signedUp();
    const seed = keyIn(await addApp(browser, 'Phone'));
    const [{ path } = { path: '' }] = await tokensOf(browser);
    const code = codeAt(seed, systemClock.now());
    const form = await browser.get(path);
    assert.match(form.html, /name="code"/);
    await dying('mfa-token-activated', () => activate(browser, path, { code }));
    assert.equal((await browser.get('/mfa-tokens')).location, '/sign-in?next=%2Fmfa-tokens', 'sessions have ended');
    const { browser: again, sentTo } = await passwordGiven(username);
    assert.equal(sentTo, VERIFY);
    assert.equal((await again.submit(VERIFY, { code })).status, 422);
    assert.equal((await again.submit(VERIFY, { code: codeAt(seed, systemClock.now(), 1) })).status, 303);
    assert.deepEqual(
      (await tokensOf(again)).map(({ status }) => status),
      ['active'],
    );
  });

  test('at mfa-tokens-removed leaves no factor, and the person begins again', async () => {
    const { username, browser } = await signedUp();
    await enrolApp(browser, 'Phone');
    const [{ path } = { path: '' }] = await tokensOf(browser);
    await dying('mfa-tokens-removed', () => remove(browser, path));
    const { browser: again, sentTo } = await passwordGiven(username);
    assert.equal(sentTo, '/mfa-tokens');
    assert.deepEqual(await tokensOf(again), []);
    await enrolApp(again, 'Tablet');
    assert.equal((await passwordGiven(username)).sentTo, VERIFY);
  });

  for (const point of ['mfa-enrolment-begun', 'mfa-challenge-taken', 'mfa-passkey-stored'] as const) {
    test(`at ${point} of a passkey leaves it pending, and the person goes on with it or without it`, async () => {
      const { username, browser } = await signedUp();
      const authenticator = newAuthenticator();
      let lost: string | null = null;
      if (point === 'mfa-enrolment-begun') {
        await dying(point, () => addPasskey(browser, 'Key'));
      } else {
        const { location } = await addPasskey(browser, 'Key');
        lost = authenticator.create(optionsIn(await browser.get(location ?? '')));
        const answer = lost;
        await dying(point, () => activate(browser, location ?? '', { answer }));
      }
      const [{ path } = { path: '' }, ...others] = await tokensOf(browser);
      assert.deepEqual(others, []);
      assert.equal((await passwordGiven(username)).sentTo, '/mfa-tokens', 'the password is enough');
      // The challenge was taken before the server died: its answer is verified once.
      if (lost !== null) assert.equal((await activate(browser, path, { answer: lost })).status, 422);
      assert.equal((await addPasskey(browser, 'Second')).status, 422, 'one is pending');
      const answer = authenticator.create(optionsIn(await browser.get(path)));
      assert.equal((await activate(browser, path, { answer })).status, 303);
      const { browser: again, sentTo } = await passwordGiven(username);
      assert.equal(sentTo, VERIFY);
      const signed = authenticator.get(optionsIn(await again.get(VERIFY)));
      assert.equal((await again.submit(VERIFY, { answer: signed })).status, 303);
      // One that nobody finishes can be deleted, and blocks nothing.
      const { location } = await addPasskey(again, 'Abandoned');
      assert.equal((await remove(again, location ?? '')).status, 303);
      assert.equal((await addPasskey(again, 'Second')).status, 303);
    });
  }

  test('at mfa-token-activated of a passkey leaves it active, and it signs in', async () => {
    const { username, browser } = await signedUp();
    const authenticator = newAuthenticator();
    const { location } = await addPasskey(browser, 'Key');
    const answer = authenticator.create(optionsIn(await browser.get(location ?? '')));
    await dying('mfa-token-activated', () => activate(browser, location ?? '', { answer }));
    assert.equal((await browser.get('/mfa-tokens')).location, '/sign-in?next=%2Fmfa-tokens', 'sessions have ended');
    const { browser: again, sentTo } = await passwordGiven(username);
    assert.equal(sentTo, VERIFY);
    const signed = authenticator.get(optionsIn(await again.get(VERIFY)));
    assert.equal((await again.submit(VERIFY, { answer: signed })).status, 303);
    assert.deepEqual(
      (await tokensOf(again)).map(({ status }) => status),
      ['active'],
    );
  });

  describe('while a person decides a device login', () => {
    interface Login {
      readonly id: string;
      readonly user_code: string;
      readonly secret_token: string;
    }

    async function begin(): Promise<Login> {
      const answer = await api(strata, '', 'POST', '/v1/auth/sessions', { hostname: 'workbench' });
      assert.equal(answer.status, 201, answer.text);
      return answer.body as Login;
    }

    /** Polls as a device does: again after a while if it polled too soon. */
    async function poll({ id, secret_token }: Login): Promise<ApiAnswer> {
      const ask = () => api(strata, '', 'GET', `/v1/auth/sessions/${id}/poll?secret_token=${secret_token}`);
      let answer = await ask();
      while (answer.status === 429) {
        await sleep(500);
        answer = await ask();
      }
      return answer;
    }
    const pageOf = ({ id }: Login): string => `/access-tokens/create?auth_session_id=${id}`;
    const decide = (browser: SiteBrowser, login: Login, decision: 'grant' | 'deny'): Promise<SitePage> =>
      browser.submit(pageOf(login), {
        ...{ decision, user_code: login.user_code, name: 'workbench' },
        ...{ permissions: 'all', scope: 'ALL_REPO', expiry: 'never' },
      });
    const namesOf = async (browser: SiteBrowser): Promise<number> =>
      [...(await browser.get('/access-tokens')).html.matchAll(/>workbench</g)].length;

    /** The device fetches its token: once, and it works. */
    async function assertPolledOnce(login: Login, username: string): Promise<void> {
      const { status, body } = await poll(login);
      const fetched = body as { readonly token: string; readonly username: string };
      assert.deepEqual([status, fetched.username], [200, username]);
      assert.equal((await api(strata, fetched.token, 'GET', '/v1/repositories')).status, 200);
      assert.equal((await poll(login)).status, 410);
    }

    for (const decision of ['grant', 'deny'] as const) {
      for (const point of ['device-login-held', 'device-login-described', 'device-login-decided'] as const) {
        test(`at ${point} leaves the ${decision} whole or not made`, async () => {
          const { username, browser } = await signedUp();
          const login = await begin();
          await dying(point, () => decide(browser, login, decision));
          const shown = await browser.get(pageOf(login));
          const isDecided = point === 'device-login-decided';
          assert.equal(shown.html.includes(login.user_code), !isDecided);
          if (isDecided) {
            assert.match(shown.html, /granted or denied already/);
          } else {
            assert.equal((await poll(login)).status, 202);
            assert.equal((await decide(browser, login, decision)).status, 303);
          }
          if (decision === 'grant') {
            await assertPolledOnce(login, username);
            await until(async () => (await namesOf(browser)) === 1);
          } else {
            assert.equal((await poll(login)).status, 403);
            assert.equal(await namesOf(browser), 0);
          }
        });
      }
    }

    test('at device-login-claimed leaves one token whose secret nobody has, which the person revokes', async () => {
      const { browser } = await signedUp();
      const login = await begin();
      assert.equal((await decide(browser, login, 'grant')).status, 303);
      await dying('device-login-claimed', () => poll(login));
      assert.equal((await poll(login)).status, 410);
      await until(async () => (await namesOf(browser)) === 1);
      const [, revoke = ''] =
        /href="(\/access-tokens\/[0-9a-f-]{36}\/revoke)"/.exec((await browser.get('/access-tokens')).html) ?? [];
      assert.equal((await browser.submit(revoke)).status, 303);
      assert.equal(await namesOf(browser), 0);
      const next = await begin();
      assert.equal((await decide(browser, next, 'grant')).status, 303);
      assert.equal((await poll(next)).status, 200);
    });
  });

  test('leaves no reference in the log to a record that is missing', async () => {
    const verified = (await admin(strata, ['log', 'verify', '--references'])) as { readonly faults: readonly string[] };
    assert.deepEqual(verified.faults, []);
  });
});
