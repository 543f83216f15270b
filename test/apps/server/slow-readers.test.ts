/**
 * The attack: a client asks for much and reads a few bytes a second. Each such connection kept memory, a file and a
 * process of git until the client cared to end it.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, type TestContext, test, vi } from 'vitest';
import { sendShared } from '../../../apps/git-http/answer.ts';
import {
  createSlowReaders,
  cutSlowReaders,
  queuedBytes,
  READER_BYTES_PER_SECOND_MIN,
  READER_SPAN_MS,
} from '../../../apps/server/slow-readers.ts';
import { selfSignedCertificate } from '../../support/self-signed-certificate.ts';

const LOOK_MS = 5_000;
const LOOKS = READER_SPAN_MS / LOOK_MS;

function createTls(listener: RequestListener): Server {
  return createTlsServer(selfSignedCertificate(), listener);
}

function openTls(port: number): Socket {
  return connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
}

function connection() {
  const state = { taken: 0, waits: true, isCut: false };
  const read = {
    takenBytes: () => state.taken,
    isWaiting: () => state.waits,
    cut: () => void (state.isCut = true),
  };
  return { state, read };
}

describe('A client that reads slowly', () => {
  test('is cut below the least speed over the whole span, and not at it', () => {
    let cuts = 0;
    const readers = createSlowReaders(() => (cuts += 1));
    const [slow, enough] = [connection(), connection()];
    for (const { read } of [slow, enough]) readers.add(read);
    const step = (READER_BYTES_PER_SECOND_MIN * LOOK_MS) / 1_000;
    readers.look();
    for (let look = 0; look < LOOKS - 1; look += 1) {
      slow.state.taken += step;
      enough.state.taken += step;
      readers.look();
    }
    slow.state.taken += step - 1;
    enough.state.taken += step;
    assert.equal(cuts, 0);
    readers.look();
    assert.deepEqual([slow.state.isCut, enough.state.isCut, cuts], [true, false, 1]);
    enough.state.taken += step;
    readers.look();
    assert.equal(cuts, 1, 'once');
  });

  test('has time again whenever nothing waits for it, and none after it left', () => {
    const readers = createSlowReaders(() => assert.fail('nobody is too slow'));
    const [paused, gone] = [connection(), connection()];
    for (const { read } of [paused, gone]) readers.add(read);
    for (let look = 0; look < 3 * LOOKS; look += 1) {
      paused.state.waits = look % LOOKS !== 0;
      if (look === LOOKS - 1) readers.delete(gone.read);
      readers.look();
    }
  });

  const isCut = async (context: TestContext, server: Server, open: (port: number) => Socket): Promise<void> => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    context.onTestFinished(() => void vi.useRealTimers());
    let cuts = 0;
    cutSlowReaders(server, () => (cuts += 1));
    server.listen(0, '127.0.0.1');
    context.onTestFinished(() => void server.close());
    await once(server, 'listening');
    const connected = once(server, 'connection');
    const client = open((server.address() as AddressInfo).port);
    context.onTestFinished(() => void client.destroy());
    client.on('error', () => undefined);
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(client, 'readable');
    const [response] = await answered;
    const closed = once(response, 'close');
    // Between two parts of an answer nothing waits. Once the system takes no more, something always does.
    const [socket] = (await connected) as [Socket];
    while (queuedBytes(socket) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    vi.advanceTimersByTime(READER_SPAN_MS);
    assert.equal(cuts, 0);
    vi.advanceTimersByTime(LOOK_MS);
    assert.equal(cuts, 1);
    await closed;
    server.close();
    await once(server, 'close');
    assert.equal(vi.getTimerCount(), 0, 'nothing looks any more');
  };

  let answered: Promise<readonly [Parameters<RequestListener>[1]]>;
  const sendMuch = (): RequestListener => {
    const { promise, resolve } = Promise.withResolvers<readonly [Parameters<RequestListener>[1]]>();
    answered = promise;
    return (_request, response) => {
      // More than the system takes.
      response.write(Buffer.alloc(32 * 1024 * 1024));
      resolve([response]);
    };
  };

  test('loses its connection, with what was made for it', async (context) => {
    await isCut(context, createServer(sendMuch()), (port) => connect(port, '127.0.0.1'));
  });

  for (const [over, listening, open] of [
    ['', createServer, (port: number) => connect(port, '127.0.0.1')],
    [' over TLS', createTls, openTls],
  ] as const) {
    test(`loses its connection${over} when many share the bytes of its answer, which lets go of them`, async (context) => {
      const shared = Buffer.alloc(32 * 1024 * 1024);
      const { promise, resolve } = Promise.withResolvers<readonly [Parameters<RequestListener>[1]]>();
      answered = promise;
      let sending = Promise.resolve();
      const server = listening((_request, response) => {
        sending = sendShared({ response, requestId: 'one' }, 'text/plain', shared, () => undefined);
        resolve([response]);
      });
      await isCut(context, server, open);
      await sending;
    });
  }

  test('loses its connection over TLS too', async (context) => {
    await isCut(context, createTls(sendMuch()), openTls);
  });
});
