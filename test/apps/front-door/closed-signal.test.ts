import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { type TestContext, test } from 'vitest';
import { closedSignal, isOfLeaving } from '../../../apps/front-door/closed-signal.ts';
import { cleanUp } from '../../support/cleanup.ts';

test('An answer whose stream closed with its connection did not fail; one that closed before did', () => {
  const socket = new Socket();
  const cut = Object.assign(new Error('Premature close'), { code: 'ERR_STREAM_PREMATURE_CLOSE' });
  assert.equal(isOfLeaving(cut, { errored: null, socket }), false);
  socket.destroy();
  assert.equal(isOfLeaving(cut, { errored: null, socket }), true);
  assert.equal(isOfLeaving(new Error('A mistake'), { errored: null, socket }), false);
});

/** A request that waits for its answer, and its client. */
async function waiting(context: TestContext): Promise<{ readonly client: Socket; readonly response: ServerResponse }> {
  const { promise, resolve } = Promise.withResolvers<ServerResponse>();
  const server = createServer((_request, response) => resolve(response));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined).resume();
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  return { client, response: await promise };
}

test('The signal of a client that left is aborted, whether it was asked for before or afterwards', async (context) => {
  const { client, response } = await waiting(context);
  const signal = closedSignal(response);
  assert.equal(signal.aborted, false);
  client.destroy();
  await once(response, 'close');
  assert.equal(signal.aborted, true);
  const afterwards = closedSignal(response);
  assert.equal(afterwards.aborted, true);
  assert.ok(isOfLeaving(afterwards.reason, { errored: null, socket: new Socket() }));
});

test('The signal of a client that got its answer is not', async (context) => {
  const { response } = await waiting(context);
  const signal = closedSignal(response);
  response.end('answered');
  await once(response, 'close');
  assert.equal(signal.aborted, false);
  assert.equal(closedSignal(response).aborted, false);
});
