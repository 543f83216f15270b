/** Connections to a node: how many may be open, and what somebody gains who sends requests before the answers come. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { describe, type TestContext, test } from 'vitest';
import {
  type ConnectionsOptions,
  createConnections,
  type Exchange,
  PIPELINED_REQUESTS_MAX,
  PIPELINED_REQUESTS_OF_NODE_MAX,
  PIPELINED_REQUESTS_READ_MAX,
} from '../../../apps/server/connections.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { selfSignedCertificate } from '../../support/self-signed-certificate.ts';

interface Started {
  readonly port: number;
  /** Requests that are served now, in the order of their arrival: each is answered by its test. */
  readonly served: { readonly target: string; readonly response: ServerResponse }[];
  /** Every address of 127.0.0.0/8 is this machine, so a client can be of any of these networks. */
  client(address?: string): Promise<Client>;
}

interface Client {
  readonly socket: Socket;
  received(): string;
  readonly closed: Promise<unknown>;
}

async function start(context: TestContext, options: Partial<ConnectionsOptions> = {}): Promise<Started> {
  const served: Started['served'] = [];
  const connections = createConnections({
    serve: (request, response) => void served.push({ target: request.url ?? '', response }),
    isExempt: () => false,
    newRequestId: () => 'an-id',
    ...options,
  });
  const server = createServer(connections.take);
  connections.watch(server, false);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    served,
    async client(address = '127.0.0.1') {
      const socket = connect({ port, host: '127.0.0.1', localAddress: address });
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
      });
      socket.on('error', () => undefined);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      await once(socket, 'connect');
      // The server has it too.
      await sleep(20);
      return { socket, received: () => text, closed };
    },
  };
}

const get = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`;
const requests = (count: number): string => Array.from({ length: count }, (_, n) => get(`/${n}`)).join('');

async function until(holds: () => boolean): Promise<void> {
  for (let n = 0; n < 500 && !holds(); n += 1) await sleep(10);
  assert.ok(holds(), 'it did not come to hold');
}

async function answerAll({ served }: Started, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await until(() => served.length > n);
    assert.equal(served[n]?.target, `/${n}`);
    served[n]?.response.end(`answer ${n}`);
  }
}

describe('Somebody who sends requests before the answers come', () => {
  test('has one worked on at a time, in their order, also those that the server had not read yet', async (context) => {
    const started = await start(context);
    const { socket, received } = await started.client();
    const count = PIPELINED_REQUESTS_MAX + 1;
    socket.write(requests(PIPELINED_REQUESTS_READ_MAX + 2));
    await until(() => started.served.length === 1);
    for (let n = PIPELINED_REQUESTS_READ_MAX + 2; n < count; n += 1) socket.write(get(`/${n}`));
    await sleep(50);
    assert.equal(started.served.length, 1);
    await answerAll(started, count);
    await until(() => received().includes(`answer ${count - 1}`));
    assert.equal(received().match(/HTTP\/1\.1 200/g)?.length, count);
  });

  test('is answered a hundred that wait, then told by name, and the connection ends', async (context) => {
    const started = await start(context);
    const { socket, received, closed } = await started.client();
    socket.write(requests(PIPELINED_REQUESTS_MAX + 1 + 500));
    await answerAll(started, PIPELINED_REQUESTS_MAX + 1);
    await closed;
    assert.match(received(), /HTTP\/1\.1 429 [^]*Retry-After: 1[^]*At most 100 requests may wait/);
    assert.equal(started.served.length, PIPELINED_REQUESTS_MAX + 1);
  });

  test('is read no further while some wait', async (context) => {
    const started = await start(context);
    const { socket } = await started.client();
    socket.write(requests(200_000));
    await until(() => started.served.length === 1);
    await sleep(500);
    const readBytes = started.served[0]?.response.socket?.bytesRead ?? 0;
    // Node reads at most 64 KiB together.
    assert.ok(readBytes > 0 && readBytes <= 2 * 64 * 1024, `${readBytes} bytes were read`);
  });

  test('loses what waits with the connection, and nothing of it is served later', async (context) => {
    const started = await start(context);
    const { socket, closed } = await started.client();
    socket.write(requests(5));
    await until(() => started.served.length === 1);
    socket.destroy();
    await closed;
    started.served[0]?.response.end('late');
    await sleep(50);
    assert.equal(started.served.length, 1);
  });

  test('from enough connections that too many wait in all loses the last immediately, and others are served', async (context) => {
    const started = await start(context);
    const each = 1_500;
    const clients: Client[] = [];
    for (let n = 0; n <= PIPELINED_REQUESTS_OF_NODE_MAX / each + 1; n += 1) {
      const client = await started.client();
      client.socket.write(requests(each));
      clients.push(client);
      await sleep(20);
    }
    await until(() => clients.some(({ socket }) => socket.destroyed));
    const other = await started.client();
    other.socket.write(get('/other'));
    await until(() => started.served.some(({ target }) => target === '/other'));
  });

  test('makes as many wait in all as the node lets wait, and loses the connection with one more', async (context) => {
    const { promise: taken, resolve: onTaken } = Promise.withResolvers<Exchange>();
    const connections = createConnections({
      serve: (request, response) => onTaken({ request, response }),
      isExempt: () => false,
      newRequestId: () => 'an-id',
    });
    const server = createServer(connections.take);
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    cleanUp(context, () => server.close());
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    cleanUp(context, () => void client.destroy());
    client.on('error', () => undefined);
    client.write(get('/'));
    // The bytes of one chunk hold fewer, so the requests are brought by hand.
    const { request, response } = await taken;
    for (let n = 0; n < PIPELINED_REQUESTS_OF_NODE_MAX; n += 1) connections.take(request, response);
    assert.equal(request.socket.destroyed, false);
    connections.take(request, response);
    assert.ok(request.socket.destroyed);
  });

  test('may send a body before the answer, which is read when its turn has come', async (context) => {
    const bodies: string[] = [];
    const started = await start(context, {
      serve: (request, response) => {
        let body = '';
        request.on('data', (chunk: Buffer) => {
          body += chunk.toString();
        });
        request.on('end', () => {
          bodies.push(body);
          setTimeout(() => response.end('done'), 10);
        });
      },
    });
    const { socket, received } = await started.client();
    const post = (body: string) => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const wanted = Array.from({ length: 30 }, (_, n) => String(n).repeat(5_000));
    for (const body of wanted) {
      const text = post(body);
      socket.write(text.slice(0, -100));
      await sleep(1);
      socket.write(text.slice(-100));
    }
    await until(() => received().match(/HTTP\/1\.1 200/g)?.length === wanted.length);
    assert.deepEqual(bodies, wanted);
  });
});

describe('Connections', () => {
  test('beyond those of a network end the one of it that was idle for longest, not one with a request', async (context) => {
    const started = await start(context, { bounds: { network: { max: 3, tightMax: 3 } } });
    const [busy, oldest, newest] = [await started.client(), await started.client(), await started.client()];
    busy.socket.write(get('/slow'));
    await until(() => started.served.length === 1);
    const next = await started.client();
    await oldest.closed;
    assert.deepEqual(
      [busy, newest, next].map(({ socket }) => socket.destroyed),
      [false, false, false],
    );
    started.served[0]?.response.end('slow answer');
    await until(() => busy.received().includes('slow answer'));
  });

  test('of a network whose connections all have requests are refused by name', async (context) => {
    const started = await start(context, { bounds: { network: { max: 2, tightMax: 2 } } });
    for (let n = 0; n < 2; n += 1) (await started.client()).socket.write(get('/slow'));
    await until(() => started.served.length === 2);
    const refused = await started.client();
    await refused.closed;
    assert.match(refused.received(), /^HTTP\/1\.1 503 [^]*Too many connections are open/);
    assert.equal(started.served.length, 2);
    started.served[0]?.response.end();
    started.served[1]?.response.end();
    await sleep(50);
    const admitted = await started.client();
    admitted.socket.write(get('/again'));
    await until(() => started.served.length === 3);
  });

  test('of this machine and of proxies have the bound of the node alone', async (context) => {
    const started = await start(context, {
      isExempt: () => true,
      bounds: { network: { max: 1, tightMax: 1 }, connectionsMax: 4 },
    });
    const clients: Client[] = [];
    for (let n = 0; n < 5; n += 1) clients.push(await started.client());
    await clients[0]?.closed;
    assert.deepEqual(
      clients.map(({ socket }) => socket.destroyed),
      [true, false, false, false, false],
    );
  });

  test('over TLS give way as well', async (context) => {
    const connections = createConnections({
      serve: (_request, response) => void response.end('answer'),
      isExempt: () => false,
      newRequestId: () => 'an-id',
      bounds: { network: { max: 1, tightMax: 1 } },
    });
    const server = createTlsServer(selfSignedCertificate(), connections.take);
    connections.watch(server, true);
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    cleanUp(context, () => void server.close());
    const { port } = server.address() as AddressInfo;
    const open = async (): Promise<TLSSocket> => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
      socket.on('error', () => undefined);
      socket.write(get('/'));
      await once(socket, 'data');
      return socket;
    };
    const oldest = await open();
    const closed = once(oldest, 'close');
    const newest = await open();
    await closed;
    newest.destroy();
  });

  const bounds = {
    connectionsMax: 12,
    roomyMax: 8,
    network: { max: 3, tightMax: 1 },
    wideNetwork: { max: 4, tightMax: 2 },
  };
  /** Opens connections of an address, each with a request that is not answered; returns how many were admitted. */
  const hold = async (started: Started, address: string, count: number): Promise<number> => {
    const before = started.served.length;
    const clients: Client[] = [];
    for (let n = 0; n < count; n += 1) {
      const client = await started.client(address);
      if (!client.socket.destroyed) client.socket.write(get('/slow'));
      clients.push(client);
    }
    await until(() => clients.every(({ received }, n) => received() !== '' || started.served.length - before > n));
    return started.served.length - before;
  };

  test('of many networks in one /48 or /24 are not those of the whole node', async (context) => {
    const started = await start(context, { bounds });
    assert.equal(await hold(started, '127.1.1.1', 4), 3);
    assert.equal(await hold(started, '127.1.1.2', 3), 1);
    assert.equal(await hold(started, '127.1.1.3', 1), 0);
    assert.equal(await hold(started, '127.1.2.1', 1), 1);
  });

  test('of who has many make room for who has few, before they are all taken', async (context) => {
    const started = await start(context, { bounds });
    for (const [address, admitted] of [
      ['127.1.1.1', 3],
      ['127.1.2.1', 3],
      ['127.1.3.1', 2],
      ['127.1.4.1', 1],
      ['127.1.4.2', 1],
      ['127.1.4.3', 0],
      ['127.1.5.1', 1],
    ] as const) {
      assert.equal(await hold(started, address, 3), admitted, address);
    }
    // An idle one of the network gives way there too, and an answered request makes room.
    const idle = await started.client('127.1.6.1');
    const next = await started.client('127.1.6.1');
    await idle.closed;
    assert.equal(next.socket.destroyed, false);
    assert.equal(await hold(started, '127.1.7.1', 1), 1, 'the idle one gives way when all are taken');
    assert.equal(next.socket.destroyed, true);
    assert.equal(await hold(started, '127.1.8.1', 1), 0);
  });
});
