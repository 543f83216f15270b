/** What clients other than ours rely on: compressed answers, and scripts of other sites. */
import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { COMPRESSED_ANSWER_BYTES_MIN } from '../../../apps/api/http/compression.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

describe('The API, for other clients', () => {
  let fixture: ApiFixture;
  let token: TestToken;

  beforeAll(async () => {
    fixture = await createApiFixture();
    const owner = await fixture.account('ada');
    token = await fixture.token(owner);
    const repository = await fixture.repository(owner, 'files');
    const { objects } = fixture;
    const tree = objects.tree({
      'large.bin': ['100644', objects.blob(Buffer.alloc(5_000, 'x'))],
      'small.txt': ['100644', objects.blob('small')],
    });
    const tip = objects.commit({ tree, seconds: 1 });
    const branches = Array.from({ length: 20 }, (_, n): [string, typeof tip] => [`refs/heads/branch-${n}`, tip]);
    await fixture.push(repository, { 'refs/heads/master': tip, ...Object.fromEntries(branches) });
  });
  afterAll(() => fixture.close());

  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    fixture.request('GET', path, token, { headers });

  test('sends long JSON compressed to clients that accept it, with the same content', async () => {
    const path = '/v1/repos/ada/files/branches';
    const plain = await get(path);
    assert.equal(plain.headers['content-encoding'], undefined);
    assert.equal(plain.headers['vary'], 'accept-encoding');
    assert.ok(plain.rawPayload.length >= COMPRESSED_ANSWER_BYTES_MIN);
    for (const accepted of ['gzip', 'br, GZIP;q=0.5', '*', 'deflate, gzip, br']) {
      const answer = await get(path, { 'accept-encoding': accepted });
      assert.equal(answer.headers['content-encoding'], 'gzip', accepted);
      assert.equal(answer.headers['content-length'], String(answer.rawPayload.length));
      assert.deepEqual(gunzipSync(answer.rawPayload), plain.rawPayload);
      assert.equal(answer.headers['etag'], `W/${plain.headers['etag']}`);
      const again = await get(path, { 'accept-encoding': accepted, 'if-none-match': String(answer.headers['etag']) });
      assert.equal(again.statusCode, 304);
    }
    for (const refused of ['', 'identity', 'gzip;q=0', 'br', '*;q=0']) {
      const answer = await get(path, { 'accept-encoding': refused });
      assert.equal(answer.headers['content-encoding'], undefined, refused);
      assert.deepEqual(answer.rawPayload, plain.rawPayload);
    }
  });

  test('sends short answers, bytes of files and errors as they are', async () => {
    const accepted = { 'accept-encoding': 'gzip' };
    assert.equal((await get('/v1/repos/ada/files', accepted)).headers['content-encoding'], undefined);
    const bytes = await get('/v1/repos/ada/files/contents/large.bin?raw=true', accepted);
    assert.deepEqual([bytes.headers['content-encoding'], bytes.rawPayload.length], [undefined, 5_000]);
    assert.equal((await get('/v1/nowhere', accepted)).headers['content-encoding'], undefined);
  });

  test('compresses what is made for one caller', async () => {
    const document = await get('/v1/openapi.json', { 'accept-encoding': 'gzip' });
    assert.equal(document.headers['content-encoding'], 'gzip');
    assert.equal(JSON.parse(gunzipSync(document.rawPayload).toString()).openapi, '3.1.0');
    const account = await fixture.account('many');
    const secret = await fixture.token(account);
    for (let n = 0; n < 12; n += 1) await fixture.repository(account, `repository-${n}`);
    const headers = { 'accept-encoding': 'gzip' };
    const list = await fixture.request('GET', '/v1/repositories', secret, { headers });
    assert.deepEqual([list.headers['content-encoding'], list.headers['cache-control']], ['gzip', 'no-store']);
    assert.equal(JSON.parse(gunzipSync(list.rawPayload).toString()).repositories.length, 12);
  });

  test('lets scripts of other sites read with a token, errors included, and never change anything', async () => {
    const origin = { origin: 'https://other.example' };
    for (const path of ['/v1/repos/ada/files', '/v1/repos/ada/none', '/v1/nowhere']) {
      const answer = await get(path, origin);
      assert.equal(answer.headers['access-control-allow-origin'], '*', path);
      assert.equal(answer.headers['access-control-allow-credentials'], undefined);
      assert.match(String(answer.headers['access-control-expose-headers']), /etag/);
    }
    const unknown = await fixture.request('GET', '/v1/repositories', null, { headers: origin });
    assert.deepEqual([unknown.statusCode, unknown.headers['access-control-allow-origin']], [401, '*']);
    const written = await fixture.request('POST', '/v1/repositories', token, { headers: origin, body: { name: 'x' } });
    assert.equal(written.headers['access-control-allow-origin'], undefined);
  });

  test('answers what a browser asks before it, without a token and alike for every path', async () => {
    for (const url of ['/v1/repos/ada/files', '/v1/repos/nobody/secret', '/v1/repositories']) {
      const headers = {
        origin: 'https://other.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization',
      };
      const answer = await fixture.app.inject({ method: 'OPTIONS', url, headers });
      assert.equal(answer.statusCode, 204, url);
      assert.equal(answer.headers['access-control-allow-origin'], '*');
      assert.equal(answer.headers['access-control-allow-methods'], 'GET, HEAD, OPTIONS');
      assert.match(String(answer.headers['access-control-allow-headers']), /authorization/);
    }
  });
});
