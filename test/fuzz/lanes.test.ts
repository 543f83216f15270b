import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'vitest';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import type { Input, Sending } from './inputs.ts';
import { createLanes, type Sent } from './lanes.ts';

const WHOLE: Sending = { cutAt: null, pauseMs: 0, after: 'wait' };

interface Target {
  readonly port: number;
  connections: number;
  requests: number;
}

async function serve(context: Ending, listener: RequestListener): Promise<Target> {
  const server = createServer((request, response) => {
    target.requests += 1;
    listener(request, response);
  });
  server.on('connection', () => (target.connections += 1));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  const target: Target = { port: (server.address() as AddressInfo).port, connections: 0, requests: 0 };
  return target;
}

function inputs(count: number, text: string, sending: Sending): readonly Input[] {
  const bytes = Buffer.from(text);
  const isHead = text.startsWith('HEAD');
  return Array.from({ length: count }, (_, index) => ({ index, kind: 'x', account: 'a', bytes, isHead, sending }));
}

async function sendAll({ port }: Target, given: readonly Input[]): Promise<readonly number[]> {
  const sent: Sent[] = [];
  const left = [...given];
  await createLanes(port, (one) => sent.push(one)).run(async () => left.shift() ?? null);
  assert.equal(sent.length, given.length);
  return sent.map(({ status }) => status);
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

describe('The lanes of a fuzz run', () => {
  for (const [form, listener] of [
    ['of a length', (_, response) => response.end('text')],
    ['in chunks', (_, response) => (response.write('te'), response.end('xt'))],
    ['without a body', (_, response) => response.writeHead(204).end()],
  ] as readonly (readonly [string, RequestListener])[]) {
    test(`use a connection again after an answer ${form}`, async (context) => {
      const target = await serve(context, listener);
      const statuses = await sendAll(target, inputs(500, GET, WHOLE));
      assert.deepEqual(new Set(statuses), new Set([form === 'without a body' ? 204 : 200]));
      assert.equal(target.requests, 500);
      assert.ok(target.connections < 350, `${target.connections} connections`);
    });
  }

  test('use a connection again after the answer to HEAD, which has a length and no body', async (context) => {
    const target = await serve(context, (_, response) => response.setHeader('Content-Length', 5).end());
    await sendAll(target, inputs(100, GET.replace('GET', 'HEAD'), WHOLE));
    assert.ok(target.connections < 350, `${target.connections} connections`);
  });

  test('name the status of a failed request, and of one whose connection closes', async (context) => {
    const target = await serve(context, (_, response) => response.writeHead(500, { Connection: 'close' }).end('oh'));
    assert.deepEqual(await sendAll(target, inputs(3, GET, WHOLE)), [500, 500, 500]);
  });

  test('send the rest after a pause, or not at all', async (context) => {
    const target = await serve(context, (_, response) => response.end('text'));
    assert.deepEqual(await sendAll(target, inputs(2, GET, { cutAt: 9, pauseMs: 5, after: 'wait' })), [200, 200]);
    assert.deepEqual(await sendAll(target, inputs(2, GET, { cutAt: 9, pauseMs: 5, after: 'destroy' })), [0, 0]);
    assert.deepEqual(await sendAll(target, inputs(2, GET, { cutAt: 9, pauseMs: 0, after: 'end' })), [400, 400]);
    assert.equal(target.requests, 2);
  });

  test('survive a server that ends connections without an answer', async (context) => {
    const target = await serve(context, (request) => request.socket.destroy());
    assert.deepEqual(await sendAll(target, inputs(3, GET, WHOLE)), [0, 0, 0]);
  });
});
