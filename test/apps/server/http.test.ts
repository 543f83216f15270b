/** Which requests reach none of the parts that answer. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'vitest';
import { createHttpServer } from '../../../apps/server/http.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { exchange, parseAnswer } from '../../support/raw-http.ts';

// The attack: `PRI /v1/account/usage` alone on its line, a request of HTTP/0.9, which was answered and recorded as an
// internal error.
test('A request line without a version, or with another one, gets 400 on every path', async (context) => {
  const listener: RequestListener = (_, response) => response.end('answered');
  const server = createHttpServer({
    ...{ tls: null, git: listener, rest: listener, website: listener },
    probes: {
      roles: [],
      metrics: async () => ({ contentType: 'text/plain', bytes: new Uint8Array() }),
      ready: async () => ({ ready: true, parts: {} }),
      mayScrape: () => true,
    },
    newRequestId: () => 'r',
    isExempt: () => true,
    onUnreadable: (_, socket) => socket.destroy(),
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp(context, () => server.close());
  const { port } = server.address() as AddressInfo;
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
