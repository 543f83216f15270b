/** Device login over REST: the answer in each state, and the rate limits. */
import assert from 'node:assert/strict';
import type { LightMyRequestResponse } from 'fastify';
import { afterEach, beforeEach, describe, test } from 'vitest';
import {
  DEVICE_SESSIONS_PER_MINUTE_MAX,
  DEVICE_SESSIONS_PER_MINUTE_WIDE_MAX,
} from '../../../apps/api/handlers/device-login.ts';
import type { Cause } from '../../../core/kernel/envelope.ts';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import { type AccountId, type DeviceSessionId, plusMs } from '../../../core/kernel/ids.ts';
import { DEVICE_HOSTNAME_LENGTH_MAX, DEVICE_SESSION_SPAN_MS } from '../../../core/kernel/limits.ts';
import { denyDeviceLogin, grantDeviceLogin } from '../../../core/use-cases/tokens/device-login.ts';
import { closeDeviceLogin, expireDeviceLogin } from '../../../core/use-cases/tokens/device-login-token.ts';
import { type ApiFixture, createApiFixture } from '../../support/api-fixture.ts';

const CAUSE: Cause = {
  actor: { kind: 'system', id: 'test' },
  requestId: 'test',
  sourceAddressRef: null,
  causationId: null,
};
const CHOICES = {
  name: 'laptop',
  scope: 'ALL_REPO',
  grants: ['API_REPOS_READ'],
  repositoryIds: [],
  expiresAt: null,
} as const;

interface Session {
  readonly id: DeviceSessionId;
  readonly user_code: string;
  readonly secret_token: string;
  readonly poll_url: string;
}

describe('A device login', () => {
  let fixture: ApiFixture;
  let ada: AccountId;

  beforeEach(async () => {
    fixture = await createApiFixture();
    ada = await fixture.account('ada');
  });
  afterEach(() => fixture.close());

  const begin = (hostname: unknown = 'laptop') =>
    fixture.request('POST', '/v1/auth/sessions', null, { body: { hostname } });
  const begun = async (): Promise<Session> => (await begin()).json();
  const poll = ({ id, secret_token }: Session): Promise<LightMyRequestResponse> =>
    fixture.request('GET', `/v1/auth/sessions/${id}/poll?secret_token=${secret_token}`, null);
  /** Polls as a device does, not before the interval has passed. */
  const pollInTime = (session: Session): Promise<LightMyRequestResponse> => {
    fixture.clock.advance(2_000);
    return poll(session);
  };
  const grant = async ({ id }: Session, choices: Parameters<typeof grantDeviceLogin>[3] = CHOICES): Promise<void> => {
    const granted = await grantDeviceLogin(fixture.context, { account: ada, cause: CAUSE }, id, choices);
    assert.ok(!('refused' in granted));
  };
  const closing = () => ({ ...fixture.context, vault: fixture.vault });

  test('begins with a code for its user, a secret for polls, and a URL for each', async () => {
    const answer = await begin();
    assert.equal(answer.statusCode, 201);
    assert.equal(answer.headers['cache-control'], 'no-store');
    const { id, user_code, secret_token, ...rest } = answer.json();
    assert.match(user_code, /^[B-DF-HJ-NP-TV-XZ]{4}-\d{4}$/);
    assert.match(secret_token, /^[\w-]{43}$/);
    assert.deepEqual(rest, {
      poll_url: `http://localhost:8080/v1/auth/sessions/${id}/poll`,
      verification_url: `http://localhost:8080/access-tokens/create?auth_session_id=${id}`,
      interval: 2,
      expires_at: plusMs(fixture.clock.now(), DEVICE_SESSION_SPAN_MS),
    });
  });

  test('is pending until it is granted, then returns the token once', async () => {
    const session = await begun();
    const pending = await poll(session);
    assert.equal(pending.statusCode, 202);
    assert.deepEqual(pending.json(), { status: 'pending' });
    await grant(session);
    const granted = await pollInTime(session);
    assert.equal(granted.statusCode, 200);
    assert.equal(granted.headers['cache-control'], 'no-store');
    const { token, username, access_token } = granted.json();
    assert.equal(username, 'ada');
    assert.deepEqual(access_token, {
      id: access_token.id,
      name: 'laptop',
      scope: 'ALL_REPO',
      grants: ['API_REPOS_READ'],
      repository_ids: [],
      expires_at: null,
      created_at: fixture.clock.now(),
      last_used_at: null,
      token_prefix: token.slice(0, 11),
    });
    const used = await fixture.request('GET', '/v1/repositories', { id: access_token.id, secret: token });
    assert.equal(used.statusCode, 200);
    const again = await pollInTime(session);
    assert.equal(again.statusCode, 410);
    assert.ok(!again.body.includes(token));
    await closeDeviceLogin(closing(), CAUSE, session.id);
    assert.equal((await pollInTime(session)).statusCode, 410);
  });

  test('answers 403 after it was denied, even after it was closed', async () => {
    const session = await begun();
    await denyDeviceLogin(fixture.context, { account: ada, cause: CAUSE }, session.id);
    assert.equal((await poll(session)).statusCode, 403);
    await closeDeviceLogin(closing(), CAUSE, session.id);
    assert.equal((await pollInTime(session)).statusCode, 403);
  });

  test('answers 410 from its expiry on, granted or not, whether or not the timer has fired', async () => {
    const pending = await begun();
    const granted = await begun();
    await grant(granted);
    fixture.clock.advance(DEVICE_SESSION_SPAN_MS - 1);
    assert.equal((await poll(pending)).statusCode, 202);
    fixture.clock.advance(1);
    assert.equal((await poll(granted)).statusCode, 410);
    assert.equal((await pollInTime(pending)).statusCode, 410);
    for (const { id } of [pending, granted]) {
      await expireDeviceLogin(fixture.context, CAUSE, id);
      await closeDeviceLogin(closing(), CAUSE, id);
    }
    assert.equal((await pollInTime(pending)).statusCode, 410);
    assert.equal((await pollInTime(granted)).statusCode, 410);
  });

  test('returns no token that expired before its first poll', async () => {
    const session = await begun();
    await grant(session, { ...CHOICES, expiresAt: plusMs(fixture.clock.now(), 1_000) });
    assert.equal((await pollInTime(session)).statusCode, 410);
  });

  test('answers a wrong secret, an unknown id and a malformed id alike', async () => {
    const session = await begun();
    const other = await begun();
    const wrong = [
      { ...session, secret_token: other.secret_token },
      { ...session, secret_token: '' },
      { ...session, id: fixture.context.ids.next<DeviceSessionId>() },
      { ...session, id: 'x' as DeviceSessionId },
    ];
    for (const parameters of wrong) {
      const answer = await poll(parameters);
      assert.equal(answer.statusCode, 404);
      assert.deepEqual(answer.json(), { detail: 'Login session not found' });
    }
    assert.equal((await poll(session)).statusCode, 202, 'strangers use up none of its own polls');
    const without = await fixture.request('GET', `/v1/auth/sessions/${session.id}/poll`, null);
    assert.equal(without.statusCode, 422);
    assert.deepEqual(without.json().detail[0].loc, ['query', 'secret_token']);
  });

  test('answers 429 to a poll before the interval, without delaying the next one', async () => {
    const session = await begun();
    assert.equal((await poll(session)).statusCode, 202);
    fixture.clock.advance(1_000);
    const early = await poll(session);
    assert.equal(early.statusCode, 429);
    assert.equal(early.headers['retry-after'], '1');
    assert.equal(typeof early.json().detail, 'string');
    fixture.clock.advance(1_000);
    assert.equal((await poll(session)).statusCode, 202);
  });

  test('does not claim the token by HEAD, whose answer has no body', async () => {
    const session = await begun();
    await grant(session);
    const url = `/v1/auth/sessions/${session.id}/poll?secret_token=${session.secret_token}`;
    assert.equal((await fixture.request('HEAD', url, null)).statusCode, 401);
    const withToken = await fixture.request('HEAD', url, await fixture.token(ada));
    assert.equal(withToken.statusCode, 405);
    assert.equal(withToken.headers.allow, 'GET');
    assert.equal((await poll(session)).statusCode, 200);
  });

  test('returns the token to one of 20 concurrent polls, whatever each node has counted', async () => {
    const session = await begun();
    await grant(session);
    const answers = await Promise.all(Array.from({ length: 20 }, () => poll(session)));
    const statuses = answers.map(({ statusCode }) => statusCode);
    assert.equal(statuses.filter((status) => status === 200).length, 1);
    assert.ok(
      statuses.every((status) => status === 200 || status === 429 || status === 410),
      String(statuses),
    );
  });

  test('can be begun ten times a minute by one address, counted from the first', async () => {
    for (let count = 1; count <= DEVICE_SESSIONS_PER_MINUTE_MAX; count += 1) {
      assert.equal((await begin()).statusCode, 201);
      fixture.clock.advance(1_000);
    }
    const refused = await begin();
    assert.equal(refused.statusCode, 429);
    assert.equal(refused.headers['retry-after'], '50');
    fixture.clock.advance(50_000);
    for (let count = 1; count <= DEVICE_SESSIONS_PER_MINUTE_MAX; count += 1) {
      assert.equal((await begin()).statusCode, 201);
    }
    assert.equal((await begin()).statusCode, 429);
  });

  // The attack: a customer with all of a /48 begins logins from ever new networks of it.
  test('can be begun fifty times a minute by all networks of a /48', async () => {
    const from = (remoteAddress: string) =>
      fixture.app.inject({ method: 'POST', url: '/v1/auth/sessions', remoteAddress, payload: { hostname: 'box' } });
    for (let count = 0; count < DEVICE_SESSIONS_PER_MINUTE_WIDE_MAX; count += 1) {
      assert.equal((await from(`2001:db8:7:${count.toString(16)}::1`)).statusCode, 201);
    }
    assert.equal((await from('2001:db8:7:ffff::1')).statusCode, 429);
    assert.equal((await from('2001:db8:8::1')).statusCode, 201);
  });

  test('takes a hostname of 1 to 255 characters', async () => {
    for (const hostname of ['', 'h'.repeat(DEVICE_HOSTNAME_LENGTH_MAX + 1)]) {
      const answer = await begin(hostname);
      assert.equal(answer.statusCode, 422);
      assert.deepEqual(answer.json().detail[0].loc, ['body', 'hostname']);
    }
    assert.equal((await begin('😀'.repeat(DEVICE_HOSTNAME_LENGTH_MAX))).statusCode, 201);
    assert.equal((await fixture.request('POST', '/v1/auth/sessions', null, { body: {} })).statusCode, 422);
  });

  test('leaves no secret, hostname or address in the event log or in log lines', async () => {
    const answer = await begin('adas-own-laptop');
    const session: Session = answer.json();
    await grant(session);
    const { token } = (await poll(session)).json();
    await closeDeviceLogin(closing(), CAUSE, session.id);
    const events = await fixture.context.events.readAll(LOG_START, 1_000);
    assert.ok(events.some(({ type }) => type === 'DeviceLoginClosed'));
    const text = JSON.stringify(events.map(({ position: _position, ...event }) => event));
    const traces = [text, ...fixture.logged, JSON.stringify(fixture.finished)];
    for (const secret of [session.secret_token, token, 'adas-own-laptop', '127.0.0.1']) {
      assert.ok(!traces.some((trace) => trace.includes(secret)), secret);
    }
  });
});
