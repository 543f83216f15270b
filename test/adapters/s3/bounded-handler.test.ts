/** How much a bucket may answer, other than with an object. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test } from 'vitest';
import { createBoundedHandler, S3_ANSWER_BYTES_MAX } from '../../../adapters/s3/bounded-handler.ts';
import { cleanUp } from '../../support/cleanup.ts';

test('An answer of a bucket is read up to its limit, and one byte more is refused', async (context) => {
  let bytes = 0;
  const server = createServer((_, response) => response.end(Buffer.alloc(bytes)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const agents = { http: new HttpAgent(), https: new HttpsAgent() };
  const spans = { connectMs: 5_000, answerMs: 5_000, stalledMs: 5_000, retryMs: 1 };
  const handler = createBoundedHandler({ agents, spans });
  cleanUp(context, () => {
    handler.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const target = { protocol: 'http:', hostname: '127.0.0.1', port, method: 'GET', path: '/', query: {}, headers: {} };
  const answer = async (): Promise<number> => {
    const { response } = await handler.handle(target as never);
    return Buffer.concat(await Array.fromAsync(response.body as AsyncIterable<Buffer>)).length;
  };
  bytes = S3_ANSWER_BYTES_MAX;
  assert.equal(await answer(), S3_ANSWER_BYTES_MAX);
  bytes = S3_ANSWER_BYTES_MAX + 1;
  await assert.rejects(answer(), /The answer of the bucket is too long/);
});
