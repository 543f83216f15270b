/** The shape of every error, outages, and their log lines. */
import assert from 'node:assert/strict';
import { afterAll, afterEach, beforeAll, describe, test, vi } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { newTokenSecret } from '../../../adapters/node/token-secret.ts';
import { JSON_BODY_BYTES_MAX } from '../../../apps/api/app.ts';
import { refusalAnswer } from '../../../apps/api/denials.ts';
import { withoutSecrets } from '../../../apps/front-door/fault-log.ts';
import { REFUSALS } from '../../../apps/front-door/texts/refusals.ts';
import { checksumOf } from '../../../core/access-token/secret.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { READ_WAIT_MS } from '../../../core/kernel/limits.ts';
import { EventStoreError } from '../../../core/ports/event-store.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { ReadModelError } from '../../../core/ports/read-models.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

describe('errors', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let token: TestToken;
  let headFault: Error | null = null;
  let openFault: Error | null = null;
  let blobFault: Error | null = null;

  beforeAll(async () => {
    fixture = await createApiFixture({
      wrapEvents: (events) => ({
        ...events,
        head: async () => {
          if (headFault !== null) throw headFault;
          return events.head();
        },
      }),
      objects: (objects) => ({
        ...objects.database,
        open: async (committed) => {
          if (openFault !== null) throw openFault;
          const reader = await objects.database.open(committed);
          return {
            ...reader,
            blob: (id, range) => (blobFault === null ? reader.blob(id, range) : failing(blobFault)),
          };
        },
      }),
    });
    owner = await fixture.account('ada');
    token = await fixture.token(owner);
    const repository = await fixture.repository(owner, 'files');
    const { objects } = fixture;
    const large = objects.blob(Buffer.alloc(3 * 1024 * 1024, 'x'));
    const tree = objects.tree({ file: ['100644', objects.blob('text')], large: ['100644', large] });
    await fixture.push(repository, { 'refs/heads/master': objects.commit({ tree, seconds: 1 }) });
  });
  afterAll(() => fixture.close());
  afterEach(() => {
    headFault = null;
    openFault = null;
    blobFault = null;
    fixture.readModels.failWith(null);
    fixture.logged.length = 0;
  });

  const send = (
    payload: string | Buffer,
    headers: Readonly<Record<string, string>> = {},
    method: 'POST' | 'PUT' = 'POST',
  ) =>
    fixture.app.inject({
      method,
      url: '/v1/repositories',
      headers: { authorization: `Bearer ${token.secret}`, 'content-type': 'application/json', ...headers },
      payload,
    });

  test('every answer carries its own request id, whatever the client sent', async () => {
    const ids = new Set<string>();
    for (const [method, url, by] of [
      ['GET', '/v1/account/usage', token],
      ['GET', '/v1/account/usage', null],
      ['GET', '/v1/nothing', token],
      ['POST', '/v1/account/usage', token],
      ['POST', '/v1/repositories', token],
      ['GET', '/v1/openapi.json', null],
    ] as const) {
      const answer = await fixture.request(method, url, by, { headers: { 'x-request-id': 'chosen' } });
      const id = String(answer.headers['x-request-id']);
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
      ids.add(id);
    }
    assert.equal(ids.size, 6);
  });

  test('the request id of an answer is that of the events that the request caused', async () => {
    const created = await fixture.request('POST', '/v1/repositories', token, { body: { name: 'traced' } });
    const events = await fixture.context.events.readAll(
      0n as Parameters<typeof fixture.context.events.readAll>[0],
      1_000,
    );
    const event = events.find(({ requestId }) => requestId === created.headers['x-request-id']);
    assert.equal(event?.type, 'RepositoryCreated');
    assert.deepEqual(event?.actor, { kind: 'token', id: token.id });
    assert.equal(fixture.finished.at(-1)?.operationId, 'createRepository');
    assert.deepEqual(fixture.finished.at(-1)?.actor, { kind: 'token', id: token.id });
  });

  test('an unknown route is 401 without a token, else 404', async () => {
    for (const url of [
      '/',
      '/v1',
      '/v1/',
      '/v1/nothing',
      '/v1/repositories/',
      '/v1/webhook',
      '/V1/repositories',
      '/x?y=z',
    ]) {
      assert.equal((await fixture.request('GET', url, null)).statusCode, 401, url);
      const answer = await fixture.request('GET', url, token);
      assert.equal(answer.statusCode, 404, url);
      assert.deepEqual(answer.json(), { detail: 'Not found' });
    }
    const withBody = await fixture.app.inject({
      method: 'POST',
      url: '/v1/nothing',
      headers: { authorization: `Bearer ${token.secret}`, 'content-type': 'text/plain' },
      payload: '{',
    });
    assert.equal(withBody.statusCode, 404);
  });

  test('a wrong method is 405 with the allowed methods', async () => {
    for (const [method, url, allow] of [
      ['DELETE', '/v1/repositories', 'GET, HEAD, POST'],
      ['POST', '/v1/repos/ada/files', 'GET, HEAD, PATCH, DELETE'],
      ['PUT', '/v1/repos/ada/files/contents/a/b', 'GET, HEAD'],
      ['POST', '/v1/repos/ada/files/contents', 'GET, HEAD'],
      ['PATCH', `/v1/access-tokens/${token.id}`, 'GET, HEAD, PUT, DELETE'],
      ['PUT', '/v1/account/usage', 'GET, HEAD'],
      ['POST', '/v1/openapi.json', 'GET, HEAD'],
      // The router takes the name for the id of a bucket.
      ['DELETE', '/v1/storage-buckets/errors', 'GET, HEAD'],
      ['PATCH', '/v1/storage-buckets/oidc-setup?x', 'GET, HEAD'],
      ['POST', '/v1/storage-buckets/errors', 'GET, HEAD'],
    ] as const) {
      const answer = await fixture.request(method, url, token);
      assert.equal(answer.statusCode, 405, `${method} ${url}`);
      assert.equal(answer.headers['allow'], allow);
      assert.deepEqual(answer.json(), { detail: 'Method not allowed' });
      assert.equal((await fixture.request(method, url, null)).statusCode, 401);
    }
  });

  test('a body that is not JSON in UTF-8 is 400 with one text', async () => {
    for (const [payload, headers, detail] of [
      ['{', {}, 'The body is not valid JSON'],
      ['{"name":"x"}garbage', {}, 'The body is not valid JSON'],
      ["{'name':'x'}", {}, 'The body is not valid JSON'],
      ['{"name":"a\0b"}', {}, 'The body is not valid JSON'],
      [Buffer.from('{"name":"\xff"}', 'latin1'), {}, 'The body is not valid UTF-8'],
      [
        Buffer.from('{"name":"x"}', 'utf16le'),
        { 'content-type': 'application/json; charset=utf-16' },
        'A body is in UTF-8',
      ],
      ['{}', { 'content-encoding': 'gzip' }, 'A body is not compressed'],
      ['{}', { 'content-type': 'text/plain' }, 'The content type of a body is application/json'],
      [
        'a=b',
        { 'content-type': 'application/x-www-form-urlencoded' },
        'The content type of a body is application/json',
      ],
      ['{}', { 'content-type': 'nonsense' }, 'The content type of a body is application/json'],
    ] as const) {
      const answer = await send(payload, headers);
      assert.equal(answer.statusCode, 400, detail);
      assert.deepEqual(answer.json(), { detail });
    }
    assert.equal(
      (await send('{"name":"charset"}', { 'content-type': 'Application/JSON; charset="UTF-8"' })).statusCode,
      201,
    );
  });

  test('a body that is missing or not an object is 422', async () => {
    const missing = await send('');
    assert.equal(missing.statusCode, 422);
    assert.deepEqual(missing.json(), { detail: [{ loc: ['body'], msg: 'Field required', type: 'missing' }] });
    for (const payload of ['null', '[]', '"text"', '5', '[{"name":"x"}]']) {
      const answer = await send(payload);
      assert.equal(answer.statusCode, 422, payload);
      assert.deepEqual(answer.json().detail[0].loc, ['body'], payload);
    }
  });

  test('NUL and lone surrogates are 422 in any string or key, however deep', async () => {
    for (const [payload, loc, type] of [
      ['{"name":"a\\u0000b"}', ['body', 'name'], 'string_nul'],
      ['{"name":"a","description":"\\ud800"}', ['body', 'description'], 'string_surrogate'],
      ['{"name":"a","description":"\\udc00\\ud800"}', ['body', 'description'], 'string_surrogate'],
      ['{"name":"a","x":[1,{"y":"\\u0000"}]}', ['body', 'x', 1, 'y'], 'string_nul'],
      ['{"name":"a","\\u0000":1}', ['body'], 'string_nul'],
    ] as const) {
      const answer = await send(payload);
      assert.equal(answer.statusCode, 422, payload);
      assert.deepEqual(answer.json().detail[0].loc, loc);
      assert.equal(answer.json().detail[0].type, type);
    }
    const fine = await send('{"name":"escapes","description":"\\ud83d\\ude00 \\\\u0000 \\u0001"}');
    assert.equal(fine.statusCode, 201);
    assert.equal(fine.json().description, '😀 \\u0000 \u0001');
  });

  test('a body that nests as deeply as it is long neither crashes nor hangs', async () => {
    const deep = (levels: number) => `{"name":"deep","x":${'['.repeat(levels)}"\\u0000"${']'.repeat(levels)}}`;
    assert.equal((await send(deep(400_000))).statusCode, 413);
    assert.equal((await send(deep(11_000))).statusCode, 422);
  });

  test('keys such as __proto__ are plain text', async () => {
    const answer = await send(
      '{"name":"proto","__proto__":{"description":"x"},"constructor":{"prototype":{"polluted":1}}}',
    );
    assert.equal(answer.statusCode, 422);
    assert.deepEqual(
      answer.json<{ detail: readonly { loc: readonly string[] }[] }>().detail.map(({ loc }) => loc),
      [
        ['body', '__proto__'],
        ['body', 'constructor'],
      ],
    );
    assert.equal(Reflect.get({}, 'polluted'), undefined);
    assert.equal((await send('{"name":"first","name":"second"}')).json().name, 'second');
  });

  test('a body of 1 MiB is read, one byte more is 413', async () => {
    const body = (size: number): string => {
      const start = '{"name":"limit"';
      return `${start}${' '.repeat(size - start.length - 1)}}`;
    };
    assert.equal((await send(body(JSON_BODY_BYTES_MAX))).statusCode, 201);
    const answer = await send(body(JSON_BODY_BYTES_MAX + 1));
    assert.equal(answer.statusCode, 413);
    assert.deepEqual(answer.json(), { detail: 'The body is larger than 1048576 bytes' });
  });

  test('an unreachable log fails every request before it is authenticated', async () => {
    headFault = new EventStoreError('log-unavailable', 'down');
    for (const by of [token, { ...token, secret: newTokenSecret() }]) {
      const answer = await fixture.request('GET', '/v1/account/usage', by);
      assert.equal(answer.statusCode, 503);
      assert.equal(answer.headers['retry-after'], '5');
    }
    assert.equal((await fixture.request('GET', '/v1/account/usage', null)).statusCode, 401);
  });

  test('a node that does not reach the head of the log in 10 s answers 503, not an older state', async () => {
    let hang = false;
    const stuck = await createApiFixture({
      wrapEvents: (events) => ({ ...events, head: () => (hang ? new Promise(() => {}) : events.head()) }),
    });
    const by = await stuck.token(await stuck.account('eve'));
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      hang = true;
      const waiting = stuck.request('GET', '/v1/account/usage', by);
      // The fake clock does not advance until the request has reached the barrier.
      for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      vi.advanceTimersByTime(READ_WAIT_MS);
      const answer = await waiting;
      assert.equal(answer.statusCode, 503);
      assert.equal(answer.headers['retry-after'], '1');
    } finally {
      vi.useRealTimers();
      await stuck.close();
    }
  });

  test('a read model that lags makes only the routes that need it answer 503', async () => {
    fixture.readModels.failWith(new ReadModelError('read-model-behind', 'behind'));
    for (const url of ['/v1/repositories', '/v1/access-tokens', '/v1/account/usage', '/v1/repos/ada/files/branches']) {
      const answer = await fixture.request('GET', url, token);
      assert.equal(answer.statusCode, 503, url);
      assert.equal(answer.headers['retry-after'], '1');
    }
    assert.equal((await fixture.request('GET', '/v1/repos/ada/files', token)).statusCode, 200);
  });

  test('a bug answers 500 with the request id, and is logged without secrets', async () => {
    openFault = new Error(`no such thing: ${token.secret} at postgres://user:pass@host/db`);
    const answer = await fixture.request('GET', '/v1/repos/ada/files/contents/file', token);
    assert.equal(answer.statusCode, 500);
    assert.deepEqual(answer.json(), { detail: `Internal error. The request id is ${answer.headers['x-request-id']}` });
    const [line = ''] = fixture.logged;
    assert.ok(line.includes(String(answer.headers['x-request-id'])));
    assert.ok(line.includes('getContents'));
    assert.ok(!line.includes(token.secret) && !line.includes('user:pass'));
  });

  test('a file that cannot be read to its end breaks the connection instead of ending short', async () => {
    const port = await fixture.listen();
    blobFault = new ObjectDatabaseError('layer-missing', 'gone');
    const answer = await fetch(`http://127.0.0.1:${port}/v1/repos/ada/files/contents/large?raw=true`, {
      headers: { authorization: `Bearer ${token.secret}` },
    });
    await assert.rejects(answer.arrayBuffer());
    assert.equal(fixture.objects.openReaders(), 0);
  });

  test('a canary in a header, a query, a body or malformed JSON appears in no answer and no log', async () => {
    const canary = 'canary_7f3a9c';
    // With a right checksum, so that it is looked up.
    const digits = canary.replaceAll('_', '').padEnd(40, '0');
    const secret = `strata_${digits}${checksumOf(digest.crc32, digits)}`;
    const answers = [
      await fixture.request('GET', `/v1/account/usage?token=${canary}`, { ...token, secret }),
      await fixture.request('GET', `/v1/${canary}?x=${canary}`, token),
      await fixture.request('GET', `/v1/repos/${canary}/${canary}`, token),
      await fixture.request('GET', `/v1/repositories?page=${canary}`, token),
      await fixture.request('GET', '/v1/account/usage', token, { headers: { cookie: canary, 'x-other': canary } }),
      await send(`{"name": "${canary}`),
      await send(JSON.stringify({ name: `${canary}/`, description: [canary] })),
      await send(JSON.stringify({ name: 5, unknown: canary, default_branch: { [canary]: canary } })),
      await send(canary, { 'content-type': canary }),
    ];
    openFault = new Error('boom');
    answers.push(await fixture.request('GET', `/v1/repos/ada/files/contents/${canary}?ref=${canary}`, token));
    for (const answer of answers) {
      assert.ok(!answer.body.includes('canary'), answer.body);
      assert.ok(!JSON.stringify(answer.headers).includes('canary'));
    }
    assert.ok(!fixture.logged.join('\n').includes('canary'), fixture.logged.join('\n'));
    assert.ok(!JSON.stringify(fixture.finished).includes('canary'));
  });

  test('secrets are replaced anywhere in a text', () => {
    assert.equal(
      withoutSecrets('a strata_Abc123, whsec_Abc123, https://user:pw@host/x and postgres://u@h'),
      'a strata_…, whsec_…, https://…@host/x and postgres://…@h',
    );
  });

  test('messages of refusals are sentences, and their statuses are the specified ones', () => {
    for (const [code, { status }] of Object.entries(REFUSALS)) {
      assert.ok([401, 403, 404, 409, 410, 422, 429, 503].includes(status), code);
    }
  });

  test('of too many attempts say when to try again, in words and in Retry-After', () => {
    for (const [waitSeconds, text] of [
      [1, '1 second'],
      [59, '59 seconds'],
      [60, '1 minute'],
      [61, '2 minutes'],
    ] as const) {
      const { status, headers, body } = refusalAnswer({ code: 'too-many-attempts', waitSeconds });
      assert.deepEqual([status, headers['retry-after']], [429, String(waitSeconds)]);
      assert.deepEqual(body, { kind: 'json', json: { detail: `Too many attempts: try again in ${text}` } });
    }
  });
});

async function* failing(error: Error): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(100);
  throw error;
}
