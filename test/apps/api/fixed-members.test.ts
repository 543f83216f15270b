/**
 * Clients that read a resource, change it and write it back, on every route that changes one: what the route cannot
 * change is taken if it has the value that stands.
 */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ROUTES } from '../../../apps/api/routes.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { type ApiFixture, createApiFixture, ROLE_SETTINGS, type TestToken } from '../../support/api-fixture.ts';

type Resource = Readonly<Record<string, unknown>>;

const UPDATES = ROUTES.filter(({ method }) => method === 'PUT' || method === 'PATCH');
/** What each of them cannot change, by the contract. */
const FIXED: Readonly<Record<string, readonly string[]>> = {
  updateRepository: [
    ...['id', 'username', 'full_name', 'html_url', 'clone_url', 'owner', 'storage_bucket_id', 'size_bytes'],
    ...['created_at', 'pushed_at'],
  ],
  updateAccessToken: ['id', 'created_at', 'last_used_at', 'token_prefix'],
  updateWebhook: ['id', 'scope', 'repository_ids', 'created_at', 'updated_at'],
  updateStorageBucket: [
    ...['id', 'status', 'last_validated_at', 'last_error', 'repository_count', 'created_at', 'updated_at'],
  ],
  updateTrustRule: ['id', 'audience', 'created_at', 'last_used_at'],
};

describe('a resource that is written back', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let token: TestToken;

  beforeAll(async () => {
    fixture = await createApiFixture();
    owner = await fixture.account('ada');
    token = await fixture.token(owner);
  });
  afterAll(() => fixture.close());

  let names = 0;
  /** Makes a resource of the route and returns its address. */
  async function urlOf(path: string): Promise<string> {
    names += 1;
    if (path.startsWith('/v1/repos/')) {
      const { owned } = await fixture.repository(owner, `repository-${names}`, 'main');
      return `/v1/repos/ada/${owned.name}`;
    }
    const make: Readonly<Record<string, () => Promise<string>>> = {
      '/v1/access-tokens/{id}': async () => (await fixture.token(owner)).id,
      '/v1/webhooks/{id}': () => fixture.webhook(owner),
      '/v1/storage-buckets/{id}': () => fixture.bucket(owner),
      '/v1/oidc/trust-rules/{id}': () => fixture.trustRule(owner, { claims: { ref: 'main' } }),
    };
    const made = make[path];
    assert.ok(made !== undefined, `${path} needs a resource here`);
    return path.replace('{id}', await made());
  }

  const read = async (url: string): Promise<Resource> => {
    const answer = await fixture.request('GET', url, token);
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.json<Resource>();
  };
  const eventCount = async (): Promise<number> => {
    const { events } = (await fixture.request('GET', '/v1/account/events?limit=1000', token)).json();
    return (events as readonly unknown[]).length;
  };

  for (const { operationId, method, path } of UPDATES) {
    const write = (url: string, body: unknown) => fixture.request(method, url, token, { body });

    test(`whole, as it was read, changes nothing: ${operationId}`, async () => {
      const url = await urlOf(path);
      const whole = await read(url);
      for (const name of FIXED[operationId] ?? []) assert.ok(Object.hasOwn(whole, name), name);
      fixture.clock.advance(1_000);
      const count = await eventCount();
      const answer = await write(url, whole);
      assert.equal(answer.statusCode, 200, answer.body);
      assert.deepEqual(answer.json(), whole);
      assert.deepEqual([await read(url), await eventCount()], [whole, count]);
    });

    test(`with another value of what cannot be changed is refused by name: ${operationId}`, async () => {
      const url = await urlOf(path);
      const whole = await read(url);
      const count = await eventCount();
      const fixed = FIXED[operationId] ?? [];
      assert.ok(fixed.length > 0);
      for (const name of fixed) {
        for (const other of [`${String(whole[name])}x`, null, [], { ...Object(whole[name]), more: 1 }, 7]) {
          if (other === whole[name]) continue;
          if (Array.isArray(other) && JSON.stringify(whole[name]) === '[]') continue;
          for (const body of [{ ...whole, [name]: other }, { [name]: other }]) {
            const answer = await write(url, body);
            const loc = [['body', name]];
            assert.equal(answer.statusCode, 422, `${name} ${JSON.stringify(other)} ${answer.body}`);
            const detail = answer.json().detail as readonly { loc: unknown; type: string }[];
            assert.deepEqual([detail.map((fault) => fault.loc), detail[0]?.type], [loc, 'unchangeable']);
          }
        }
      }
      const faults = (await write(url, Object.fromEntries(fixed.map((name) => [name, 'x'])))).json().detail;
      assert.deepEqual(
        (faults as readonly { loc: unknown }[]).map(({ loc }) => loc),
        fixed.map((name) => ['body', name]),
      );
      assert.deepEqual([await read(url), await eventCount()], [whole, count]);
    });

    test(`with a member that it does not have is refused by name: ${operationId}`, async () => {
      const url = await urlOf(path);
      const whole = await read(url);
      for (const name of ['colour', 'constructor', '__proto__', 'secret', 'token', 'toString', '', 'ID']) {
        const answer = await write(url, { ...whole, [name]: name });
        assert.equal(answer.statusCode, 422, `${name} ${answer.body}`);
        const locs = (answer.json().detail as readonly { loc: unknown }[]).map(({ loc }) => loc);
        assert.deepEqual(locs, [['body', name]]);
      }
    });

    // The attack: a name of a megabyte that comes back, a value as deep as the stack, and thousands of members.
    test(`says little of what is large: ${operationId}`, async () => {
      const url = await urlOf(path);
      const long = await write(url, { ['x'.repeat(500_000)]: 1 });
      assert.deepEqual([long.statusCode, long.json().detail[0].loc[1].length], [422, 100]);
      const many = await write(url, numbered(900));
      assert.deepEqual([many.statusCode, many.json().detail.length], [422, 10]);
      const tooMany = await write(url, numbered(5_000));
      assert.deepEqual([tooMany.statusCode, typeof tooMany.json().detail], [413, 'string']);
      const deep = `{"id":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
      const answer = await fixture.app.inject({
        method,
        url,
        payload: deep,
        headers: { authorization: `Bearer ${token.secret}`, 'content-type': 'application/json' },
      });
      assert.ok([413, 422].includes(answer.statusCode) && answer.body.length < 1_000, answer.body.slice(0, 200));
    });
  }

  test('is tried on every route that changes one', () => {
    assert.deepEqual(UPDATES.map(({ operationId }) => operationId).toSorted(), Object.keys(FIXED).toSorted());
  });

  test('may have been read before the last use of it, and not after', async () => {
    const used = await fixture.token(owner);
    const url = `/v1/access-tokens/${used.id}`;
    const before = (await fixture.request('GET', url, used)).json<Resource>();
    fixture.clock.advance(120_000);
    const written = await fixture.request('PUT', url, used, { body: { ...before, name: 'renamed' } });
    assert.equal(written.statusCode, 200, written.body);
    const { last_used_at: later } = written.json<Resource>();
    assert.notEqual(later, before['last_used_at']);
    for (const wrong of [
      '2099-01-01T00:00:00.000Z',
      '2000-01-01T00:00:00.000Z',
      '2026-11-21',
      String(later).slice(0, 16),
    ]) {
      const refused = await fixture.request('PUT', url, used, { body: { last_used_at: wrong } });
      assert.deepEqual([refused.statusCode, refused.json().detail[0].loc], [422, ['body', 'last_used_at']], wrong);
    }
  });

  test('is not changed by half, if one member of several cannot be', async () => {
    const url = await urlOf('/v1/repos/{username}/{name}');
    const answer = await fixture.request('PATCH', url, token, { body: { description: 'new', username: 'new' } });
    assert.equal(answer.statusCode, 422);
    assert.equal((await read(url))['description'], null);
    assert.equal((await fixture.request('PATCH', url.toUpperCase(), token, { body: {} })).statusCode, 404);
  });

  test('of a bucket with a role still takes and ignores what belongs to keys', async () => {
    await fixture.bucket(owner);
    const { provider, authMode, bucketName, roleArn } = ROLE_SETTINGS;
    const body = {
      ...{ name: 'ignored', provider, auth_mode: authMode, bucket_name: bucketName, role_arn: roleArn },
      ...{ region: 'eu-1', endpoint_url: 'https://minio.example', access_key_id: 'AKIA1', secret_access_key: 'x' },
    };
    const made = await fixture.request('POST', '/v1/storage-buckets', token, { body });
    assert.equal(made.statusCode, 201, made.body);
    const { region, endpoint_url: endpoint, access_key_id: key } = made.json();
    assert.deepEqual([region, endpoint, key], [null, null, null]);
  });
});

function numbered(count: number): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`x${n}`, n]));
}
