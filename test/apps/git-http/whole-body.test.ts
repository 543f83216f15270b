/** A whole body of a Git client: what is read of it, however it arrives, and when its reading ends. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, type TestContext, test } from 'vitest';
import { createBodyBudget } from '../../../apps/front-door/body-budget.ts';
import { BodyError } from '../../../apps/git-http/body.ts';
import { readBody } from '../../../apps/git-http/whole-body.ts';
import { BODY_CHUNK_HELD_BYTES } from '../../../core/kernel/limits.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { eventually } from '../../support/processes.ts';

type Options = Parameters<typeof readBody>[1];
const BUDGET = createBodyBudget();
const plain = (): Options => ({
  bytesMax: 1_000_000,
  spanMs: 60_000,
  idleMs: 60_000,
  held: BUDGET.open({ account: 'ada' }),
  isWanted: () => true,
});

interface Reading {
  readonly client: Socket;
  /** What was read, as text, or the code or message of the error. */
  readonly outcome: Promise<string>;
  readonly request: Promise<IncomingMessage>;
}

/** Reads the body of one request; `when` resolves when the reading is to begin. */
async function reading(
  context: TestContext,
  options: Partial<Options>,
  when: (request: IncomingMessage) => Promise<void> = async () => undefined,
): Promise<Reading> {
  const { promise: outcome, resolve } = Promise.withResolvers<string>();
  const { promise: request, resolve: came } = Promise.withResolvers<IncomingMessage>();
  const server = createServer((incoming, response) => {
    came(incoming);
    when(incoming)
      .then(() => readBody(incoming, { ...plain(), ...options }))
      .then(
        ({ bytes, receivedBytes }) => resolve(`${receivedBytes} ${bytes.toString('latin1')}`),
        (error: unknown) => resolve(error instanceof BodyError ? error.code : String(error)),
      )
      .finally(() => response.end());
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  await once(client, 'connect');
  client.setNoDelay(true);
  return { client, outcome, request };
}

const complete = (request: IncomingMessage) => eventually('the body has arrived', () => request.complete);

function messageOf(body: Buffer, { gzip = false, chunked = false } = {}): Buffer {
  const coding = gzip ? 'Content-Encoding: gzip\r\n' : '';
  const length = chunked ? 'Transfer-Encoding: chunked\r\n' : `Content-Length: ${body.length}\r\n`;
  const framed = chunked
    ? Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')])
    : body;
  return Buffer.concat([Buffer.from(`POST / HTTP/1.1\r\nHost: localhost\r\n${coding}${length}\r\n`), framed]);
}

describe('A whole body', () => {
  const text = '0014command=ls-refs\n0000';
  const zipped = gzipSync(text);
  const manyIds = gzipSync(Buffer.alloc(300_000, 'x'));
  for (const [what, body, form, expected] of [
    ['of a known length', Buffer.from(text), {}, `${text.length} ${text}`],
    ['in chunks', Buffer.from(text), { chunked: true }, `${text.length} ${text}`],
    ['of gzip', zipped, { gzip: true }, `${zipped.length} ${text}`],
    ['of gzip in chunks', zipped, { gzip: true, chunked: true }, `${zipped.length} ${text}`],
    ['of gzip that ends early', zipped.subarray(0, -3), { gzip: true }, 'body-broken'],
    ['of gzip with something behind it', Buffer.concat([zipped, Buffer.from('x')]), { gzip: true }, 'body-broken'],
    ['that is called gzip and is not', Buffer.from(text), { gzip: true }, 'body-broken'],
    ['that is larger than it may be', Buffer.alloc(1_000_001), {}, 'body-too-large'],
    ['of gzip that becomes too large', gzipSync(Buffer.alloc(1_000_001)), { gzip: true }, 'body-too-large'],
    ['of gzip that becomes large', manyIds, { gzip: true }, `${manyIds.length} ${'x'.repeat(300_000)}`],
    ['of no bytes', Buffer.alloc(0), {}, '0 '],
    ['of gzip without bytes', Buffer.alloc(0), { gzip: true }, 'body-broken'],
  ] as const) {
    test(`${what} is the same whether it is there, comes in one piece, or byte by byte`, async (context) => {
      const message = messageOf(body, form);
      const arriving = await reading(context, {});
      arriving.client.write(message);
      assert.equal(await arriving.outcome, expected);
      if (message.length > 10_000) return;
      const there = await reading(context, {}, complete);
      there.client.write(message);
      assert.equal(await there.outcome, expected);
      const dripping = await reading(context, {});
      for (const byte of message) {
        dripping.client.write(Buffer.of(byte));
        await new Promise(setImmediate);
      }
      assert.equal(await dripping.outcome, expected);
    });
  }

  test('whose client falls silent ends with its connection', async (context) => {
    const { client, outcome } = await reading(context, { idleMs: 200 });
    client.write(messageOf(Buffer.from('ab')).subarray(0, -1));
    assert.match(await outcome, /aborted/);
  });

  test('whose client leaves ends, before its reading began and while it is read', async (context) => {
    for (const when of [
      async () => undefined,
      (request: IncomingMessage) => eventually('the client left', () => request.destroyed),
    ]) {
      const { client, outcome, request } = await reading(context, {}, when);
      client.write(messageOf(Buffer.from('ab')).subarray(0, -1));
      await request;
      client.destroy();
      assert.match(await outcome, /aborted|closed/);
    }
  });

  test('ends in time, however slowly it comes, and is not read on', async (context) => {
    const { client, outcome, request } = await reading(context, { spanMs: 200 });
    client.write(messageOf(Buffer.alloc(1_000)).subarray(0, -999));
    const dripping = setInterval(() => client.write('x'), 20);
    cleanUp(context, () => clearInterval(dripping));
    assert.equal(await outcome, 'body-too-slow');
    const { socket } = await request;
    assert.equal(socket.timeout, 0);
    assert.equal((await request).listenerCount('data'), 0);
  });

  test('is refused at its first wrong byte, while the rest has not come', async (context) => {
    const { client, outcome, request } = await reading(context, { isWanted: (bytes) => bytes[0] !== 0x21 });
    client.write(messageOf(Buffer.alloc(1_000, '!')).subarray(0, -900));
    assert.match(await outcome, /^100 !+$/);
    assert.equal((await request).listenerCount('data'), 0);
  });

  test('takes memory for its bytes and for each piece, plain or inflated, however it arrives', async (context) => {
    for (const gzip of [false, true]) {
      const message = messageOf(gzip ? zipped : Buffer.from(text), { gzip });
      for (const [when, pieces] of [
        [complete, [message]],
        [undefined, Array.from(message, (byte) => Buffer.of(byte))],
      ] as const) {
        const grown: number[] = [];
        const grow = (bytes: number): null => {
          grown.push(bytes);
          return null;
        };
        const { client, outcome } = await reading(context, { held: { grow } }, when);
        for (const piece of pieces) {
          client.write(piece);
          await new Promise(setImmediate);
        }
        assert.match(await outcome, /ls-refs/);
        const sum = grown.reduce((all, bytes) => all + bytes, 0);
        assert.equal(sum, text.length + grown.length * BODY_CHUNK_HELD_BYTES);
        assert.ok(grown.length >= (gzip || pieces.length === 1 ? 1 : 2), `${grown.length} pieces`);
      }
    }
  });

  test('for which there is no memory is refused, and so is one of gzip that is there', async (context) => {
    const held = {
      grow: (bytes: number) => (bytes > 10 ? ({ status: 503, text: 'full', waitSeconds: 1 } as const) : null),
    };
    for (const gzip of [false, true]) {
      const body = gzip ? gzipSync(text) : Buffer.from(text);
      for (const when of [undefined, complete]) {
        const { client, outcome } = await reading(context, { held }, when);
        client.write(messageOf(body, { gzip }));
        assert.equal(await outcome, 'body-of-all-held');
      }
    }
  });
});
