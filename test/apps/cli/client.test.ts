/** The client's requests, against servers and proxies on loopback that fault as a network does. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import path from 'node:path';
import { describe, test } from 'vitest';
import { ApiError, type ClientOptions, createClient } from '../../../apps/cli/client/client.ts';
import { proxyFor } from '../../../apps/cli/client/proxy.ts';
import { readText, UnreachableError } from '../../../apps/cli/client/transport.ts';
import { createAuthority } from '../../support/certificates.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
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
  test('waits as long as a 429 says and sends again, whatever the method', async (context) => {
    const { url, requests } = await serve(context, (_request, response) => {
      if (requests.length === 1) response.writeHead(429, { 'retry-after': '1' }).end();
      else response.writeHead(201).end('{"id":"1"}');
    });
    const waits: number[] = [];
    const client = clientOf(url, { onWait: (seconds) => void waits.push(seconds) });
    assert.deepEqual(await client.call('createRepository', { body: { name: 'x' } }), { id: '1' });
    assert.deepEqual([waits, requests.length], [[1], 2]);
  });

  test('sends a request that changes something once only when the service cannot answer', async (context) => {
    const { url, requests } = await serve(context, (_request, response) => {
      response.writeHead(503, { 'retry-after': '1' }).end('{"detail":"Later"}');
    });
    await assert.rejects(clientOf(url).call('createRepository', { body: { name: 'x' } }), ApiError);
    assert.equal(requests.length, 1);
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
    await assert.rejects(clientOf(url).call('getUsage', {}), UnreachableError);
    async function* whole() {
      yield new Uint8Array(4096);
    }
    assert.equal((await readText(whole(), 4096)).length, 4096);
    async function* endless() {
      for (;;) yield new Uint8Array(1024);
    }
    await assert.rejects(readText(endless(), 4096), /larger than 4096 bytes/);
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
  assert.equal(proxyFor(new URL('http://a/'), { ALL_PROXY: 'socks5://proxy:1' }), null);
});
