/** The documents by which others check the identity tokens of this service. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { PUBLIC_KEYS_CACHE_SECONDS } from '../../../apps/api/handlers/identity.ts';
import { type ApiFixture, createApiFixture } from '../../support/api-fixture.ts';

const DISCOVERY = '/.well-known/openid-configuration';
const KEYS = '/.well-known/jwks.json';

describe('The documents of the issuer', () => {
  let fixture: ApiFixture;
  beforeAll(async () => {
    fixture = await createApiFixture();
  });
  afterAll(() => fixture.close());

  test('name the base URL as issuer, and where its keys are', async () => {
    const answer = await fixture.request('GET', DISCOVERY, null);
    assert.equal(answer.statusCode, 200);
    assert.deepEqual(answer.json(), {
      issuer: 'http://localhost:8080',
      jwks_uri: `http://localhost:8080${KEYS}`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256', 'ES256'],
      claims_supported: ['iss', 'sub', 'aud', 'iat', 'nbf', 'exp', 'jti'],
      scopes_supported: ['openid'],
    });
  });

  // The attack: a Host header of the client's choice turns the issuer into another one, which a shared cache keeps.
  test('are the same whatever host the client names', async () => {
    for (const path of [DISCOVERY, KEYS]) {
      const usual = await fixture.request('GET', path, null);
      const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' };
      const other = await fixture.request('GET', path, null, { headers });
      assert.equal(other.body, usual.body);
    }
  });

  test('may be kept by anybody for as long as the rotation of keys waits, and are not sent again unchanged', async () => {
    for (const path of [DISCOVERY, KEYS]) {
      const { headers } = await fixture.request('GET', path, null);
      assert.equal(headers['cache-control'], `public, max-age=${PUBLIC_KEYS_CACHE_SECONDS}`);
      assert.match(String(headers['content-type']), /^application\/json/);
      const again = await fixture.request('GET', path, null, { headers: { 'if-none-match': String(headers['etag']) } });
      assert.equal(again.statusCode, 304);
      assert.equal(again.headers['cache-control'], headers['cache-control']);
      const head = await fixture.request('HEAD', path, null);
      assert.equal(head.statusCode, 200);
      assert.equal(head.headers['etag'], headers['etag']);
      assert.equal(head.headers['content-length'], headers['content-length']);
    }
  });

  test('need no token, and take no wrong one amiss', async () => {
    for (const authorization of ['Bearer wrong', 'Basic x', 'nonsense']) {
      const answer = await fixture.request('GET', KEYS, null, { headers: { authorization } });
      assert.equal(answer.statusCode, 200, authorization);
    }
  });

  test('hold a key of each algorithm, and the keys do not change from one request to the next', async () => {
    const read = async () =>
      (await fixture.request('GET', KEYS, null)).json<{ keys: { alg: string; kid: string }[] }>();
    const { keys } = await read();
    assert.deepEqual(
      keys.map(({ alg }) => alg),
      ['RS256', 'ES256'],
    );
    assert.deepEqual((await read()).keys, keys);
  });
});
