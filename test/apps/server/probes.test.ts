/** The operators' endpoints, on a server with nothing behind it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'vitest';
import { createProbeListener } from '../../../apps/server/probes.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { parseAnswer, rawRequest } from '../../support/raw-http.ts';

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
  const http = createServer((request, response) => probe(request.url ?? '', request, response));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  cleanUp(context, () => void http.close());
  const address = http.address();
  if (address === null || typeof address === 'string') throw new TypeError('The server has no port');
  return { port: address.port, asked: () => asked };
}

test('A pipeline of scrapes gets one answer, and the end of its connection', async (context) => {
  const { port, asked } = await serve(context);
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
  socket.on('error', () => undefined);
  socket.write('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(6_000));
  await once(socket, 'close');
  assert.equal(text.match(/HTTP\/1\.1 200/g)?.length, 1);
  assert.equal(parseAnswer(text).body, 'figure 1\n');
  assert.equal(asked(), 1);
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
