/** The client's requests, against servers and proxies on loopback that fault as a network does. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import path from 'node:path';
import { describe, test, vi } from 'vitest';
import { ApiError, type ClientOptions, createClient } from '../../../apps/cli/client/client.ts';
import { proxyFor } from '../../../apps/cli/client/proxy.ts';
import { retryAfter } from '../../../apps/cli/client/repeating.ts';
import { readText, UnreachableError, type WireAnswer } from '../../../apps/cli/client/transport.ts';
import { createAuthority } from '../../support/certificates.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { freePort } from '../../support/free-port.ts';
import { tempDir } from '../../support/temp-dir.ts';

interface Listening {
  readonly url: string;
  readonly requests: IncomingMessage[];
}

async function serve(
  context: Ending,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Listening> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  // A proxy: RFC 9110, section 9.3.6.
  server.on('connect', (request: IncomingMessage, socket) => {
    requests.push(request);
    const [host = '', port] = (request.url ?? '').split(':');
    const target = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
    target.on('error', () => socket.destroy());
    socket.on('error', () => target.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

const clientOf = (baseUrl: string, more: Partial<ClientOptions> = {}) =>
  createClient({ baseUrl, token: 'the token', environment: {}, ...more });

describe('the client', () => {
  test('waits as long as a 429 says and sends again what is as good twice as once', async (context) => {
    const { url, requests } = await serve(context, (_request, response) => {
      if (requests.length === 1) response.writeHead(429, { 'retry-after': '1' }).end();
      else response.end('{"id":"1"}');
    });
    const waits: number[] = [];
    const client = clientOf(url, { onWait: (seconds) => void waits.push(seconds) });
    const changed = await client.call('updateWebhook', { path: { id: '1' }, body: { active: true } });
    assert.deepEqual([changed, waits, requests.length], [{ id: '1' }, [1], 2]);
  });

  // What a proxy does while the service behind it restarts, and what a network does.
  test('sends GET, HEAD, PUT and DELETE again after resets, broken answers, 502, 503 and 504', async (context) => {
    const faults: readonly ((response: ServerResponse) => void)[] = [
      (response) => void response.socket?.resetAndDestroy(),
      (response) => void response.socket?.destroy(),
      (response) => void response.writeHead(502).end('<html>'),
      (response) => void response.writeHead(503).end(),
      (response) => void response.writeHead(504).end(),
    ];
    await Promise.all(
      faults.flatMap((fault) =>
        ['GET', 'HEAD', 'PUT', 'DELETE'].map(async (method) => {
          const { url, requests } = await serve(context, (_request, response) => {
            if (requests.length === 1) fault(response);
            else response.end();
          });
          const { status } = await clientOf(url).send({ method, target: '/v1/account/usage' });
          assert.deepEqual([status, requests.length], [200, 2], `${method} ${fault}`);
        }),
      ),
    );
    const { url, requests } = await serve(context, (_request, response) => {
      if (requests.length === 1)
        response.writeHead(200, { 'content-length': '9' }).write('{', () => response.destroy());
      else response.end('{}');
    });
    assert.deepEqual(await clientOf(url).call('getUsage', {}), {});
  });

  test('sends a request that changes something once, and tells that it may be done', async (context) => {
    for (const [fault, mayBeDone] of [
      [(response: ServerResponse) => void response.socket?.resetAndDestroy(), true],
      [(response: ServerResponse) => void response.writeHead(502).end('<html>'), true],
      [
        (response: ServerResponse) => void response.writeHead(503, { 'retry-after': '1' }).end('{"detail":"Later"}'),
        true,
      ],
      [(response: ServerResponse) => void response.writeHead(504).end(), true],
      [(response: ServerResponse) => void response.writeHead(429, { 'retry-after': '1' }).end(), false],
      [(response: ServerResponse) => void response.writeHead(409).end(), false],
    ] as const) {
      const { url, requests } = await serve(context, (_request, response) => fault(response));
      for (const call of [
        clientOf(url).call('createRepository', { body: { name: 'x' } }),
        clientOf(url).call('updateRepository', { path: { username: 'ada', name: 'x' }, body: { description: 'x' } }),
      ]) {
        const error: unknown = await call.catch((thrown: unknown) => thrown);
        assert.ok(error instanceof ApiError || error instanceof UnreachableError, String(error));
        assert.equal(error.mayBeDone, mayBeDone, `${fault}`);
      }
      assert.equal(requests.length, 2);
    }
  });

  test('sends anything again where nothing listened, but never an identity token', async (context) => {
    const port = await freePort();
    let times = 0;
    const listen = (): void => {
      const server = createServer((_request, response) => {
        times += 1;
        response.writeHead(201).end('{"id":"1"}');
      });
      server.listen(port, '127.0.0.1');
      cleanUp(context, () => {
        server.closeAllConnections();
        server.close();
      });
    };
    const waits: (number | null)[] = [];
    const client = clientOf(`http://127.0.0.1:${port}`, {
      onWait: (_seconds, status) => {
        if (waits.push(status) === 1) listen();
      },
    });
    const exchanged = client.call('exchangeIdentityToken', { body: { id_token: 'x' } });
    await assert.rejects(exchanged, (error) => error instanceof UnreachableError && !error.mayBeDone);
    assert.deepEqual(waits, []);
    assert.deepEqual(await client.call('createRepository', { body: { name: 'x' } }), { id: '1' });
    assert.deepEqual([waits, times], [[null], 1]);
  });

  test('repeats four times at most, each time after twice as long, and no certificate that is not trusted', async () => {
    const failing = (code: string) => async (): Promise<WireAnswer> => {
      throw new UnreachableError('x', { cause: new Error('x', { cause: Object.assign(new Error('x'), { code }) }) });
    };
    const answering = (status: number, retryAfter: string | null) => async (): Promise<WireAnswer> => ({
      ...{ status, header: () => retryAfter, body: (async function* () {})() },
    });
    vi.useFakeTimers();
    try {
      for (const [transport, expected] of [
        [failing('ETIMEDOUT'), [0.5, 1, 2, 4]],
        [failing('ECONNRESET'), [0.5, 1, 2, 4]],
        [answering(502, null), [0.5, 1, 2, 4]],
        [answering(429, '60'), [60, 60, 60, 60]],
        [answering(429, '61'), []],
        [answering(500, null), []],
        [failing('SELF_SIGNED_CERT_IN_CHAIN'), []],
        [failing('ENOTFOUND'), []],
      ] as const) {
        const waits: number[] = [];
        const client = clientOf('http://service', { transport, onWait: (seconds) => void waits.push(seconds) });
        const ended = assert.rejects(client.call('getUsage', {}));
        await vi.advanceTimersByTimeAsync(400_000);
        await ended;
        assert.deepEqual(waits, expected);
      }
    } finally {
      vi.useRealTimers();
    }
  });

  test('waits until the date that Retry-After names, as proxies send it', () => {
    const waitOf = (text: string | null) =>
      retryAfter({ status: 429, header: () => text, body: (async function* () {})() });
    const inTenSeconds = waitOf(new Date(Date.now() + 10_000).toUTCString());
    assert.ok(inTenSeconds !== null && inTenSeconds >= 9 && inTenSeconds <= 10, String(inTenSeconds));
    const rest = ['7', '0', 'Wed, 21 Oct 2015 07:28:00 GMT', null, '', 'soon'].map(waitOf);
    assert.deepEqual(rest, [7, 1, 1, null, null, null]);
  });

  test('takes a 404 to the repeat of a DELETE for success only if the first may have been carried out', async (context) => {
    for (const [fault, isDone] of [
      [(response: ServerResponse) => void response.socket?.resetAndDestroy(), true],
      [(response: ServerResponse) => void response.writeHead(504).end(), true],
      [(response: ServerResponse) => void response.writeHead(429, { 'retry-after': '1' }).end(), false],
      [(response: ServerResponse) => void response.writeHead(404).end(), false],
    ] as const) {
      const { url, requests } = await serve(context, (_request, response) => {
        if (requests.length === 1) fault(response);
        else response.writeHead(404).end('{"detail":"Not found"}');
      });
      const deleted = clientOf(url).call('deleteWebhook', { path: { id: '1' } });
      if (isDone) assert.equal(await deleted, undefined);
      else await assert.rejects(deleted, ApiError);
    }
  });

  // The attack: whoever answers for the service for a moment sends the token on to a host of theirs.
  test('follows no redirect', async (context) => {
    const other = await serve(context, (_request, response) => response.end('{}'));
    const { url } = await serve(context, (_request, response) => {
      response.writeHead(307, { location: `${other.url}/v1/account/usage` }).end();
    });
    await assert.rejects(clientOf(url).call('getUsage', {}), { name: 'ApiError', status: 307 });
    assert.equal(other.requests.length, 0);
  });

  // The attack: an id from elsewhere, such as `../account`, names another route.
  test('puts no value into a path that could name another route', async (context) => {
    const { url, requests } = await serve(context, (_request, response) => response.end('{}'));
    for (const id of ['..', '.', '']) {
      await assert.rejects(clientOf(url).call('deleteWebhook', { path: { id } }), { name: 'InvalidInputError' });
    }
    await clientOf(url).call('deleteWebhook', { path: { id: '../a?b#c' } });
    assert.deepEqual(
      requests.map(({ url: target }) => target),
      ['/v1/webhooks/..%2Fa%3Fb%23c'],
    );
  });

  test('tells each fault of a field, and the status where an answer is no JSON', async (context) => {
    const bodies = [
      '{"detail":[{"loc":["body","name"],"msg":"Too long","type":"x"},{"loc":["query"],"msg":"Bad","type":"x"}]}',
      '<html>Bad gateway</html>',
      '{"detail":{"unexpected":true}}',
      'null',
    ];
    const { url, requests } = await serve(context, (_request, response) => {
      response.writeHead(422).end(bodies[requests.length - 1]);
    });
    const said = [];
    for (const _body of bodies)
      said.push(
        await clientOf(url)
          .call('getUsage', {})
          .catch((error: unknown) => String(error).replace(/^ApiError: /, '')),
      );
    const other = 'The service answered with status 422';
    assert.deepEqual(said, ['name: Too long\nBad', other, other, other]);
  });

  test('reports an answer that breaks off, and one that is too large for memory', async (context) => {
    const { url } = await serve(context, (_request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{', () => response.destroy());
    });
    const made = clientOf(url).call('createRepository', { body: { name: 'x' } });
    await assert.rejects(made, (error) => error instanceof UnreachableError && error.mayBeDone);
    async function* whole() {
      yield new Uint8Array(4096);
    }
    assert.equal((await readText(whole(), 4096)).length, 4096);
    async function* endless() {
      for (;;) yield new Uint8Array(1024);
    }
    await assert.rejects(readText(endless(), 4096), /larger than 4096 bytes/);
  });

  test('sends contents in parts with their size, and ends with the error of one that cannot be read', async (context) => {
    const chunks: Buffer[] = [];
    const { url, requests } = await serve(context, (request, response) => {
      request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
      request.on('end', () => response.writeHead(201).end('{}'));
    });
    const large = Buffer.alloc(300_000, 'large\r\n');
    async function* inPieces() {
      for (let at = 0; at < large.length; at += 70_000) yield large.subarray(at, at + 70_000);
    }
    async function* broken() {
      yield large;
      throw new Error('The file was changed');
    }
    const commit = (bytes: () => AsyncIterable<Uint8Array>) => {
      const parts = [{ name: 'file 1', sizeBytes: large.length, bytes }];
      const changes = [{ action: 'put', path: 'ä', part: 'file 1' }] as const;
      const body = { branch: 'main', expected: 'any', message: 'x', changes };
      return clientOf(url).call('writeCommit', { path: { username: 'ada', name: 'x' }, body, parts });
    };
    await commit(inPieces);
    const { 'content-type': type = '', 'content-length': sizeBytes } = requests[0]?.headers ?? {};
    const body = Buffer.concat(chunks);
    assert.equal(sizeBytes, String(body.length));
    const form = await new Response(body, { headers: { 'content-type': type } }).formData();
    const [json, content] = [form.get('commit'), form.get('file 1')];
    assert.ok(typeof json === 'string' && content instanceof Blob);
    assert.match(json, /"path":"ä","part":"file 1"/);
    assert.deepEqual(Buffer.from(await content.arrayBuffer()), large);
    await assert.rejects(commit(broken), new Error('The file was changed'));
  });

  test('goes through the proxy that the environment names, with its user and password', async (context) => {
    const service = await serve(context, (_request, response) => response.end('{}'));
    const proxy = await serve(context, (_request, response) => response.end('{"by":"proxy"}'));
    const environment = { http_proxy: proxy.url.replace('://', '://ada:p%40ss@') };
    assert.deepEqual(await clientOf(service.url, { environment }).call('getUsage', {}), { by: 'proxy' });
    const [asked] = proxy.requests;
    assert.equal(asked?.url, `${service.url}/v1/account/usage`);
    assert.equal(asked?.headers['proxy-authorization'], `Basic ${btoa('ada:p@ss')}`);
    await clientOf(service.url, { environment: { ...environment, no_proxy: '127.0.0.1' } }).call('getUsage', {});
    assert.equal(service.requests.length, 1);
  });

  test('trusts the authorities of SSL_CERT_FILE, also through a proxy, and no others', async (context) => {
    const authority = createAuthority();
    const file = path.join(await tempDir(context), 'authority.pem');
    await writeFile(file, authority.cert);
    const server = createTlsServer(authority.issue(['127.0.0.1', 'localhost']), (_request, response) =>
      response.end('{}'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUp(context, () => {
      server.closeAllConnections();
      server.close();
    });
    let connections = 0;
    server.on('secureConnection', () => (connections += 1));
    const proxy = await serve(context, (_request, response) => response.end());
    const url = `https://localhost:${(server.address() as AddressInfo).port}`;
    const trusting = { SSL_CERT_FILE: file };
    assert.deepEqual(await clientOf(url, { environment: trusting }).call('getUsage', {}), {});
    const environment = { ...trusting, https_proxy: proxy.url };
    assert.deepEqual(await clientOf(url, { environment }).call('getUsage', {}), {});
    assert.deepEqual([proxy.requests.length, connections], [1, 2]);
    await assert.rejects(clientOf(url).call('getUsage', {}), /not trusted; NODE_EXTRA_CA_CERTS/);
    await assert.rejects(
      clientOf(url, { environment: { https_proxy: proxy.url } }).call('getUsage', {}),
      /not trusted/,
    );
    const absent = { SSL_CERT_FILE: `${file}.absent` };
    await assert.rejects(clientOf(url, { environment: absent }).call('getUsage', {}), /cannot be read/);
  });

  test('asks a proxy for a tunnel where the service has TLS, and shows the proxy no token', async (context) => {
    const service = await serve(context, (_request, response) => response.end('{}'));
    const proxy = await serve(context, (_request, response) => response.end());
    const baseUrl = service.url.replace('http:', 'https:');
    // The service speaks no TLS: the handshake through the tunnel fails, which is far enough.
    await assert.rejects(clientOf(baseUrl, { environment: { HTTPS_PROXY: proxy.url } }).call('getUsage', {}));
    assert.deepEqual(
      proxy.requests.map(({ method, url, headers }) => [method, url, headers.authorization]),
      [['CONNECT', service.url.slice('http://'.length), undefined]],
    );
  });
});

test('no_proxy names hosts, domains, ports, or everything', () => {
  const through = (url: string, list: string): boolean =>
    proxyFor(new URL(url), { https_proxy: 'proxy:3128', no_proxy: list }) !== null;
  for (const list of [
    'git.example.org',
    '.example.org',
    'example.org',
    '*.example.org',
    'a, git.example.org:443',
    '*',
  ]) {
    assert.equal(through('https://git.example.org/', list), false, list);
  }
  for (const list of ['', 'it.example.org', 'git.example.org:8443', 'org.example', 'git.example.orgs']) {
    assert.equal(through('https://git.example.org/', list), true, list);
  }
  assert.equal(through('https://[::1]/', '[::1]'), false);
  assert.equal(proxyFor(new URL('http://a/'), { https_proxy: 'http://proxy:1' }), null);
});
