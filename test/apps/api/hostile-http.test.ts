/** Hostile HTTP, byte by byte over a socket: the server refuses requests that a proxy could read differently. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { exchange, parseAnswer, type RawAnswer, rawRequest } from '../../support/raw-http.ts';

describe('hostile HTTP', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let token: TestToken;
  let bearer: string;
  let port: number;

  beforeAll(async () => {
    fixture = await createApiFixture();
    owner = await fixture.account('ada');
    token = await fixture.token(owner);
    bearer = `Authorization: Bearer ${token.secret}`;
    await fixture.repository(owner, 'engine');
    port = await fixture.listen();
  });
  afterAll(() => fixture.close());

  function assertRefused(answer: RawAnswer, what: string): void {
    assert.equal(answer.status, 400, `${what}: ${answer.status} ${answer.body}`);
    assert.equal(typeof JSON.parse(answer.body).detail, 'string', what);
    assert.match(answer.headers['x-request-id'] ?? '', /^[0-9a-f-]{36}$/, what);
    assert.equal(answer.headers['connection'], 'close', what);
  }

  const post = (headers: readonly string[], body: string) =>
    rawRequest(port, {
      method: 'POST',
      target: '/v1/repositories',
      headers: [bearer, 'Content-Type: application/json', ...headers],
      body,
    });

  test('a request with two tokens, or two hosts, is refused', async () => {
    const stranger = await fixture.token(await fixture.account('eve'));
    const target = '/v1/account/usage';
    assertRefused(
      await rawRequest(port, { target, headers: [bearer, `Authorization: Bearer ${stranger.secret}`] }),
      'tokens',
    );
    assertRefused(
      await rawRequest(port, { target, headers: [bearer, bearer.replace('Auth', 'AUTH')] }),
      'equal tokens',
    );
    assertRefused(await rawRequest(port, { target, headers: [bearer, 'Host: evil.example'] }), 'hosts');
    assertRefused(await rawRequest(port, { target, headers: [bearer, 'host: localhost'] }), 'equal hosts');
    const nameless = await exchange(port, `GET ${target} HTTP/1.1\r\nConnection: close\r\n${bearer}\r\n\r\n`);
    assert.equal(parseAnswer(nameless).status, 400);
  });

  // The attack: `{"grants": [1, 1, …]}`. Each wrong item was looked up among all of them, so that 40 KB held the event
  // loop for half a minute, and a body of the largest size would have held it for hours.
  test('a body of many wrong values is refused, and its answer is small', async () => {
    const send = (items: number) => {
      const body = { name: 'x', scope: 'ALL_REPO', grants: Array(items).fill(1) };
      return fixture.request('POST', '/v1/access-tokens', token, { body });
    };
    // The body, its three members and 11,996 items are 12,000 values.
    const many = await send(11_996);
    const { detail } = many.json();
    assert.deepEqual([many.statusCode, detail.length, detail[99].loc], [422, 100, ['body', 'grants', 99]]);
    const more = await send(11_997);
    assert.equal(more.statusCode, 413);
    assert.match(more.json().detail, /^The body holds more than 12000 values, or an object of more than 1000 members/);
  });

  test('a body with an ambiguous end smuggles no second request', async () => {
    const smuggled = `DELETE /v1/repos/ada/engine HTTP/1.1\r\nHost: localhost\r\n${bearer}\r\n\r\n`;
    const name = '{"name":"smuggled"}';
    for (const [headers, body] of [
      [['Content-Length: 4', 'Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`],
      [['Content-Length: 4', 'Content-Length: 5'], `null${smuggled}`],
      [['Content-Length: 4, 4'], `null${smuggled}`],
      [['Content-Length: +4'], `null${smuggled}`],
      [['Content-Length: 0x4'], `null${smuggled}`],
      [['Content-Length: -1'], smuggled],
      [['Transfer-Encoding: gzip, chunked'], `0\r\n\r\n${smuggled}`],
      [['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`],
      [['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`],
      [['Transfer-Encoding: chunked, identity'], `0\r\n\r\n${smuggled}`],
      [['Transfer-Encoding: xchunked'], `0\r\n\r\n${smuggled}`],
      [['Transfer-Encoding: identity'], `0\r\n\r\n${smuggled}`],
      [['Transfer-Encoding : chunked'], `0\r\n\r\n${smuggled}`],
      [['X: y\nTransfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`],
      [['Transfer-Encoding: chunked'], `13\n${name}\r\n0\r\n\r\n${smuggled}`],
      [['Transfer-Encoding: chunked'], `+13\r\n${name}\r\n0\r\n\r\n${smuggled}`],
    ] as const) {
      const answer = await post(headers, body);
      assert.ok(answer.status === 400 || answer.status === 422, `${headers.join()}: ${answer.status} ${answer.body}`);
      assert.equal((await fixture.request('GET', '/v1/repos/ada/engine', token)).statusCode, 200, headers.join());
      assert.equal((await fixture.request('GET', '/v1/repos/ada/smuggled', token)).statusCode, 404, headers.join());
    }
  });

  test('an unsupported transfer coding is refused, even if the body would be valid', async () => {
    const chunks = '16\r\n{"name":"coded-twice"}\r\n0\r\n\r\n';
    for (const coding of ['gzip, chunked', 'identity, chunked', 'chunked, chunked', 'deflate,chunked']) {
      assertRefused(await post([`Transfer-Encoding: ${coding}`], chunks), coding);
    }
    assert.equal((await post(['Transfer-Encoding: chunked'], chunks)).status, 201);
  });

  test('a chunked body is read, with `chunked` in any case', async () => {
    const chunks = '10\r\n{"name":"chunked\r\n2\r\n"}\r\n0\r\n\r\n';
    assert.equal((await post(['Transfer-Encoding: Chunked'], chunks)).status, 201);
  });

  test('an endless chunked body is cut at 1 MiB', async () => {
    const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;
    const answer = await post(['Transfer-Encoding: chunked'], chunk.repeat(20));
    assert.equal(answer.status, 413);
    assert.equal(answer.headers['connection'], 'close');
  });

  test('a second Content-Type header is refused, and does not decide how the body is read', async () => {
    const headers = ['Content-Type: text/plain', 'Content-Length: 2'];
    assertRefused(await post(headers, '{}'), 'content types');
  });

  test('a request that is not HTTP gets an error in the usual shape', async () => {
    for (const text of [
      'NONSENSE\r\n\r\n',
      'GET /v1/account/usage HTTP/9.9\r\n\r\n',
      `GET /v1/account/usage HTTP/1.1\r\nHost: localhost\r\nBad Header: x\r\n\r\n`,
      `GET /v1/account/usage HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n`,
      `GET /v1/account/usage HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n`,
    ]) {
      assertRefused(parseAnswer(await exchange(port, text)), text);
    }
    const huge = `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`;
    const answer = parseAnswer(await exchange(port, huge));
    assert.equal(answer.status, 431);
    assert.equal(typeof JSON.parse(answer.body).detail, 'string');
  });

  test('a target that is not a path of the API is 401 without a token, else 404', async () => {
    for (const target of [
      ...['http://localhost/v1/account/usage', 'HTTP://evil.example/v1/account/usage', '*', '//v1/account/usage'],
      ...['/v1/../v1/account/usage', '/v1/%2e%2e/v1/account/usage', '/v1/./account/usage', '/v1//account/usage'],
      ...[
        '/v1/account/usage/',
        '/v1/account/usage%00',
        '/v1/account%2Fusage',
        '/v1/account/usage;x',
        '/v1\\account\\usage',
      ],
      ...['/v1/repos/ada%2Fengine', '/v1/repos/%2e%2e/engine', '/v1/repos/ada/%2e%2e', '/v1/repos/ada/engine%00'],
      ...['/v1/repos/ada/engin%65%2e', '/v1/repos/ada/%FF', '/v1/repos/a%cc%88da/engine', '/v1/repos/ada/CON', '/v1/%'],
      ...['/v1/repos/ada/engine/branches/', '/v1/repos/__proto__/constructor', '/v1/repos/ada/engine/%62ranches%2f'],
    ]) {
      const without = await rawRequest(port, { method: target === '*' ? 'OPTIONS' : 'GET', target });
      assert.equal(without.status, 401, target);
      const answer = await rawRequest(port, { method: target === '*' ? 'OPTIONS' : 'GET', target, headers: [bearer] });
      assert.equal(answer.status, 404, `${target}: ${answer.status} ${answer.body}`);
      assert.equal(typeof JSON.parse(answer.body).detail, 'string', target);
    }
  });

  test('an Authorization header counts only in the one valid form', async () => {
    const target = '/v1/account/usage';
    const basic = Buffer.from(`ada:${token.secret}`).toString('base64');
    for (const value of [
      ...['', 'Bearer', 'Bearer ', token.secret, `Basic ${basic}`, `Token ${token.secret}`, `Bearer${token.secret}`],
      ...[`Bearer ${token.secret}x`, `Bearer ${token.secret} x`, `Bearer "${token.secret}"`, `Bearer ${token.secret},`],
      ...[`Bearer ${token.secret.toUpperCase()}`, `Bearer ${'x'.repeat(8_000)}`, 'Bearer strata_', 'Bearer null'],
    ]) {
      const answer = await rawRequest(port, { target, headers: [`Authorization: ${value}`] });
      assert.equal(answer.status, 401, value);
      assert.equal(answer.headers['www-authenticate'], 'Bearer');
    }
    for (const value of [`bearer ${token.secret}`, `BEARER   ${token.secret}  `]) {
      assert.equal((await rawRequest(port, { target, headers: [`Authorization: ${value}`] })).status, 200, value);
    }
    const inQuery = await rawRequest(port, { target: `${target}?access_token=${token.secret}` });
    assert.equal(inQuery.status, 401);
    const inCookie = await rawRequest(port, { target, headers: [`Cookie: token=${token.secret}`] });
    assert.equal(inCookie.status, 401);
  });

  test('a header or a parameter does not override the method', async () => {
    const headers = [bearer, 'X-HTTP-Method-Override: DELETE', 'X-Method-Override: DELETE'];
    const answer = await rawRequest(port, { method: 'GET', target: '/v1/repos/ada/engine', headers });
    assert.equal(answer.status, 200);
    const named = await rawRequest(port, { method: 'GET', target: '/v1/repos/ada/engine?_method=DELETE', headers });
    assert.equal(named.status, 422);
    for (const method of ['TRACE', 'PROPFIND', 'LINK', 'PURGE']) {
      assert.equal(
        (await rawRequest(port, { method, target: '/v1/repos/ada/engine', headers: [bearer] })).status,
        405,
        method,
      );
    }
    assert.equal((await fixture.request('GET', '/v1/repos/ada/engine', token)).statusCode, 200);
  });

  test('pipelined requests are each authenticated', async () => {
    const stranger = await fixture.token(await fixture.account('mallory'));
    const request = (secret: string, last: boolean): string =>
      `GET /v1/repos/ada/engine HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${secret}\r\n${last ? 'Connection: close\r\n' : ''}\r\n`;
    const text = await exchange(
      port,
      request(token.secret, false) + request(stranger.secret, false) + request(token.secret, true),
    );
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ['200', '404', '200']);
  });

  test('a client that disconnects during a large file frees the objects opened for it', async () => {
    const { objects } = fixture;
    const large = objects.blob(Buffer.alloc(40 * 1024 * 1024, 'x'));
    const tree = objects.tree({ large: ['100644', large] });
    const repository = await fixture.repository(owner, 'large');
    await fixture.push(repository, { 'refs/heads/master': objects.commit({ tree, seconds: 1 }) });
    const used = fixture.context.transfer.unflushedBytes(owner);
    for (const query of ['', '?raw=true']) {
      const socket = connect(port, '127.0.0.1');
      socket.write(`GET /v1/repos/ada/large/contents/large${query} HTTP/1.1\r\nHost: localhost\r\n${bearer}\r\n\r\n`);
      await new Promise((resolve) => socket.once('data', resolve));
      assert.equal(objects.openReaders(), 1);
      socket.destroy();
      while (objects.openReaders() > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const sent = fixture.context.transfer.unflushedBytes(owner) - used;
    assert.ok(sent > 0 && sent < 80 * 1024 * 1024, 'what did not go out is not counted');
  });

  test('a client that neither sends its body nor reads its answer is disconnected', async () => {
    const patient = await createApiFixture({ timeouts: { body: 50, idle: 50 } });
    try {
      const account = await patient.account('slow');
      const secret = `Authorization: Bearer ${(await patient.token(account)).secret}`;
      const { objects } = patient;
      const tree = objects.tree({ large: ['100644', objects.blob(Buffer.alloc(60 * 1024 * 1024, 'x'))] });
      const repository = await patient.repository(account, 'large');
      await patient.push(repository, { 'refs/heads/master': objects.commit({ tree, seconds: 1 }) });
      const slowPort = await patient.listen();
      const head = [`POST /v1/repositories HTTP/1.1`, 'Host: localhost', secret, 'Content-Type: application/json'];
      // The test is that the connection ends.
      await exchange(slowPort, `${head.join('\r\n')}\r\nContent-Length: 20\r\n\r\n{"name":`);
      const socket = connect(slowPort, '127.0.0.1');
      socket.write(`GET /v1/repos/slow/large/contents/large HTTP/1.1\r\nHost: localhost\r\n${secret}\r\n\r\n`);
      await new Promise((resolve) => socket.once('readable', resolve));
      while (objects.openReaders() > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      socket.destroy();
    } finally {
      await patient.close();
    }
  });
});
