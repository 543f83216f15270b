/** The operators' endpoints, on a server with nothing behind it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'vitest';
import { createProbeListener } from '../../../apps/server/probes.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { rawRequest } from '../../support/raw-http.ts';

async function serve(context: TestContext, { mayScrape = true } = {}) {
  let asked = 0;
  const probe = createProbeListener({
    roles: ['api'],
    metrics: async () => {
      asked += 1;
      return { contentType: 'text/plain', bytes: Buffer.from('figure 1\n') };
    },
    ready: async () => ({ ready: true, parts: { log: 'ok' } }),
    mayScrape: () => mayScrape,
  });
  const http = createServer((asking, answer) => probe(asking.url ?? '', asking, answer));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  cleanUp(context, () => void http.close());
  const address = http.address();
  if (address === null || typeof address === 'string') throw new TypeError('The server has no port');
  return { port: address.port, asked: () => asked };
}

for (const target of ['/metrics', '/readyz', '/healthz']) {
  test(`A pipeline of requests for ${target} ends its connection immediately`, async (context) => {
    const { port, asked } = await serve(context);
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
    socket.on('error', () => undefined);
    socket.write(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(6_000));
    await new Promise((resolve) => socket.once('close', resolve));
    assert.ok((text.match(/HTTP\/1\.1 200/g) ?? []).length <= 1, text);
    assert.ok(asked() <= 1);
  });
}

test('A connection is kept for requests that come one after the other', async (context) => {
  const { port, asked } = await serve(context);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  cleanUp(context, () => agent.destroy());
  const ports = new Set<number | undefined>();
  for (let count = 0; count < 50; count += 1) {
    const sent = request({ port, host: '127.0.0.1', path: count % 2 === 0 ? '/metrics' : '/readyz', agent });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    ports.add(sent.socket?.localPort);
    assert.equal(answer.statusCode, 200);
    answer.resume();
    await once(answer, 'end');
  }
  assert.deepEqual([ports.size, asked()], [1, 25]);
});

test('Who may not read the metrics gets the answer of a path that does not exist', async (context) => {
  const { port, asked } = await serve(context, { mayScrape: false });
  for (const method of ['GET', 'HEAD', 'POST']) {
    assert.equal((await rawRequest(port, { method, target: '/metrics' })).status, 404);
  }
  assert.equal(asked(), 0);
  const ready = await rawRequest(port, { target: '/readyz' });
  assert.match(ready.body, /\{"status":"ok","roles":\["api"\],"parts":\{"log":"ok"\}\}/);
});

test('The endpoints take GET and HEAD only', async (context) => {
  const { port } = await serve(context);
  for (const target of ['/metrics', '/readyz', '/healthz']) {
    const answer = await rawRequest(port, { method: 'POST', target });
    assert.deepEqual([answer.status, answer.headers['allow']], [405, 'GET']);
  }
});
