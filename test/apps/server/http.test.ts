/** Which requests reach none of the parts that answer, and what is set for all. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type TestContext, test } from 'vitest';
import {
  createHttpServer,
  HEADER_BYTES_MAX,
  type HttpServerOptions,
  TLS_HANDSHAKE_SPAN_MS,
} from '../../../apps/server/http.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { exchange, parseAnswer } from '../../support/raw-http.ts';
import { selfSignedCertificate } from '../../support/self-signed-certificate.ts';

function serverOf(listener: RequestListener, more: Partial<HttpServerOptions> = {}): Server {
  return createHttpServer({
    ...{ tls: null, git: listener, rest: listener, website: listener },
    probes: {
      roles: [],
      metrics: async () => ({ contentType: 'text/plain', bytes: new Uint8Array() }),
      ready: async () => ({ ready: true, parts: {} }),
      mayScrape: () => true,
    },
    newRequestId: () => 'r',
    authorities: new Set(),
    isExempt: () => true,
    onUnreadable: (_, socket) => socket.destroy(),
    ...more,
  });
}

async function startServer(
  context: TestContext,
  listener: RequestListener,
  more?: Partial<HttpServerOptions>,
): Promise<number> {
  const server = serverOf(listener, more);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp(context, () => server.close());
  return (server.address() as AddressInfo).port;
}

// The attack: `PRI /v1/account/usage` alone on its line, a request of HTTP/0.9, which was answered and recorded as an
// internal error.
test('A request line without a version, or with another one, gets 400 on every path', async (context) => {
  const port = await startServer(context, (_, response) => response.end('answered'));
  for (const target of ['/v1/account/usage', '/r/ada/engine/info/refs', '/sign-in', '/metrics', '*']) {
    for (const line of [`PRI ${target}`, `GET ${target}`, `GET ${target} HTTP/2.0`]) {
      const { status, body } = parseAnswer(await exchange(port, `${line}\r\nHost: localhost\r\n\r\n`));
      assert.deepEqual(
        [status, JSON.parse(body)],
        [400, { detail: 'The request line ends with HTTP/1.1, or HTTP/1.0' }],
      );
    }
    for (const version of ['1.0', '1.1']) {
      const head = `GET ${target} HTTP/${version}\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
      assert.equal(parseAnswer(await exchange(port, head)).status, 200, target);
    }
  }
});

// Node counts the target, and the names and values of all headers.
test('A request head is read below its limit, and refused from there on', async (context) => {
  const port = await startServer(context, (_, response) => response.end('answered'));
  const counted = ['/', 'Host', 'localhost', 'Connection', 'close', 'X'].join('').length;
  const send = (bytes: number) =>
    exchange(
      port,
      `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: ${'x'.repeat(bytes - counted)}\r\n\r\n`,
    );
  assert.equal(parseAnswer(await send(HEADER_BYTES_MAX - 1)).status, 200);
  assert.equal(await send(HEADER_BYTES_MAX), '', 'the bare socket is given to whoever answers what is unreadable');
});

// The attack: connections that never begin the handshake, and hold their places for as long as they please.
test('A handshake of TLS has the time that Node is given for it, and its connection ends after that', async (context) => {
  const answer: RequestListener = (_, response) => response.end('answered');
  const { cert, key } = selfSignedCertificate();
  const tls = { cert: Buffer.from(cert), key: Buffer.from(key) };
  const server = serverOf(answer, { tls });
  const given = Object.getOwnPropertySymbols(server).find(({ description }) => description === 'handshake-timeout');
  assert.equal(Reflect.get(server, given ?? ''), TLS_HANDSHAKE_SPAN_MS);
  const port = await startServer(context, answer, { tls, handshakeSpanMs: 100 });
  const client = connect(port, '127.0.0.1');
  const since = performance.now();
  await once(client, 'close');
  assert.ok(performance.now() - since >= 90);
});

// Node takes many listeners on one emitter for a leak, and wrote so into the log of a server where none was.
test('A dozen parts that listen to the end of a response make no warning', async (context) => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  cleanUp(context, () => void process.off('warning', note));
  const port = await startServer(context, (_, response) => {
    for (let part = 0; part < 12; part += 1) response.once('close', () => undefined);
    response.end('answered');
  });
  const head = 'GET /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  assert.equal(parseAnswer(await exchange(port, head)).status, 200);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
});
