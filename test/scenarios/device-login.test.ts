/** A device logs in through two servers after an operator grants it; the token it fetches works for git and REST. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { person } from '../support/person.ts';
import { until } from '../support/read-models.ts';
import { type Account, admin, api, createAccount, type Strata, tryAdmin } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';

interface Session {
  readonly id: string;
  readonly user_code: string;
  readonly secret_token: string;
}

interface Fetched {
  readonly token: string;
  readonly username: string;
  readonly access_token: { readonly id: string; readonly name: string };
}

describe('A device login', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let one: Strata;
  let two: Strata;
  let ada: Account;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    [one, two] = await Promise.all([startNode(ending, shared), startNode(ending, shared)]);
    ada = await createAccount(one, 'ada');
  });

  async function begin(strata: Strata, hostname: string): Promise<Session> {
    const answer = await api(strata, '', 'POST', '/v1/auth/sessions', { hostname });
    assert.equal(answer.status, 201, answer.text);
    return answer.body as Session;
  }

  const poll = (strata: Pick<Strata, 'url'>, { id, secret_token }: Session) =>
    api(strata, '', 'GET', `/v1/auth/sessions/${id}/poll?secret_token=${secret_token}`);

  test('granted by its code gives the token to exactly one of 20 concurrent polls on both servers', async () => {
    const session = await begin(one, 'workbench');
    const args = ['--username', 'ada', '--code', session.user_code.toLowerCase()];
    const granted = await admin(one, ['device', 'grant', ...args, '--grants', 'API_REPOS_READ']);
    const { name } = granted as { readonly name: string };
    // The hostname is personal, and the name of a token stays in the log.
    assert.match(name, /^Command line, \d{4}-\d{2}-\d{2}$/);
    assert.deepEqual(granted, {
      id: session.id,
      user_code: session.user_code,
      hostname: 'workbench',
      username: 'ada',
      status: 'granted',
      name,
      scope: 'ALL_REPO',
      grants: ['API_REPOS_READ'],
      repository_ids: [],
      expires_at: null,
    });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => poll(n % 2 === 0 ? one : two, session)));
    const won = answers.filter(({ status }) => status === 200);
    assert.equal(won.length, 1, answers.map(({ status }) => status).join(' '));
    const fetched = won[0]?.body as Fetched;
    assert.deepEqual([fetched.username, fetched.access_token.name], ['ada', name]);
    assert.doesNotMatch(
      JSON.stringify(await shared.log.since(), (_key, value: unknown) =>
        typeof value === 'bigint' ? String(value) : value,
      ),
      /workbench/,
    );
    for (const node of [one, two]) {
      assert.equal((await api(node, fetched.token, 'GET', '/v1/repositories')).status, 200);
      assert.equal((await api(node, fetched.token, 'GET', '/v1/access-tokens')).status, 403);
    }
    const repeated = await tryAdmin(one, ['device', 'grant', ...args]);
    assert.deepEqual([repeated.code, /No login waits under the code/.test(repeated.stderr)], [1, true]);
  });

  test('denied by its code answers 403', async () => {
    const session = await begin(two, 'stranger');
    const args = ['--username', 'ada', '--code', session.user_code];
    const denied = await admin(one, ['device', 'deny', ...args]);
    assert.deepEqual(denied, {
      id: session.id,
      user_code: session.user_code,
      hostname: 'stranger',
      username: 'ada',
      status: 'denied',
    });
    assert.equal((await poll(one, session)).status, 403);
    assert.equal((await tryAdmin(one, ['device', 'deny', '--username', 'ada', '--code', 'nonsense'])).code, 2);
  });

  test('claimed by a server that died is finished by another: the token is recorded, its secret is stored nowhere', async () => {
    const dying = await startNode(ending, shared, { STRATA_FAILPOINT: 'device-login-claimed' });
    const session = await begin(dying, 'unlucky');
    await admin(one, ['device', 'grant', '--username', 'ada', '--code', session.user_code, '--name', 'unlucky']);
    await assert.rejects(poll(dying, session));
    const lost = await poll(two, session);
    assert.equal(lost.status, 410, lost.text);
    const listed = async (): Promise<readonly string[]> => {
      const { body } = await api(two, ada.token, 'GET', '/v1/access-tokens');
      return (body as { access_tokens: { name: string }[] }).access_tokens.map(({ name }) => name);
    };
    await until(async () => (await listed()).includes('unlucky'));
    await until(async () => {
      const events = await shared.log.since();
      const ended = events.filter(({ stream }) => stream === `deviceSession-${session.id}`);
      return ended.at(-1)?.type === 'DeviceLoginClosed';
    });
    assert.equal((await listed()).filter((name) => name === 'unlucky').length, 1);
  });

  // All tests of this file begin fewer logins than an address may begin in a minute.
  for (const point of ['device-login-held', 'device-login-decided']) {
    const isDecided = point === 'device-login-decided';
    test(`whose decision dies at ${point} ${isDecided ? 'is decided' : 'still waits'}, and has one decision`, async () => {
      const session = await begin(one, 'survivor');
      const args = ['device', 'grant', '--username', 'ada', '--code', session.user_code, '--name', 'survivor'];
      const killed = await tryAdmin({ env: { ...one.env, STRATA_FAILPOINT: point } }, args);
      assert.notEqual(killed.code, 0);
      assert.equal((await tryAdmin(one, args)).code, isDecided ? 1 : 0);
      const { status, body } = await poll(two, session);
      assert.deepEqual([status, (body as Fetched).access_token.name], [200, 'survivor']);
      const events = (await shared.log.since()).filter(({ stream }) => stream === `deviceSession-${session.id}`);
      assert.deepEqual(
        events.slice(0, 2).map(({ type }) => type),
        ['DeviceLoginGranted', 'DeviceLoginClaimed'],
      );
    });
  }

  test('granted on the website of a node that dies at any step is decided once, on another node', async () => {
    const bob = person();
    const wanted = { username: 'bob', email: 'bob@example.org', password: 'correct horse battery' };
    assert.equal((await bob.submit(one, '/sign-up', wanted)).status, 303);
    for (const point of ['device-login-described', 'device-login-decided']) {
      const session = await begin(one, 'browser');
      const page = `/access-tokens/create?auth_session_id=${session.id}`;
      const choice = { name: point, permissions: 'all', scope: 'ALL_REPO', expiry: 'never' };
      const grant = { decision: 'grant', user_code: session.user_code, ...choice };
      const dying = await startNode(ending, shared, { STRATA_FAILPOINT: point });
      await assert.rejects(bob.submit(dying, page, grant));
      const shown = await bob.read(two, page);
      if (point === 'device-login-decided') {
        assert.match(shown, /granted or denied already/);
      } else {
        assert.ok(shown.includes(session.user_code));
        assert.equal((await bob.submit(two, page, grant)).status, 303);
      }
      const { status, body } = await poll(one, session);
      assert.deepEqual([status, (body as Fetched).username, (body as Fetched).access_token.name], [200, 'bob', point]);
    }
  });

  test('that nobody decides leaves nothing in the log', async () => {
    const session = await begin(one, 'ignored');
    assert.equal((await poll(two, session)).status, 202);
    const events = await shared.log.since();
    assert.ok(events.every(({ stream }) => stream !== `deviceSession-${session.id}`));
  });

  test('may be granted while no server runs', async () => {
    const session = await begin(one, 'night owl');
    await Promise.all([one.stop(), two.stop()]);
    await admin(one, ['device', 'grant', '--username', 'ada', '--code', session.user_code, '--name', 'owl']);
    [one, two] = await Promise.all([one.restart(), two.restart()]);
    const { status, body } = await poll(two, session);
    assert.deepEqual([status, (body as Fetched).access_token.name], [200, 'owl']);
  });

  test('leaves nothing wrong that a rebuild or a verification would find', async () => {
    assert.equal((await api(one, ada.token, 'GET', '/v1/account/usage')).status, 200);
    const verified = (await admin(one, ['log', 'verify', '--references'])) as { readonly faults: readonly string[] };
    assert.deepEqual(verified.faults, []);
    const { projections } = (await admin(one, ['projections', 'rebuild', '--verify'])) as {
      readonly projections: readonly { readonly model: string; readonly differences: number }[];
    };
    assert.ok(
      projections.every(({ differences }) => differences === 0),
      JSON.stringify(projections),
    );
    assert.ok(projections.some(({ model }) => model === 'timers'));
  });
});
