/** The body of a Git client's request: how long it may be silent, and who keeps whom waiting. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import { GitHttpError } from '../../../apps/git-http/answer.ts';
import { openBody } from '../../../apps/git-http/body.ts';
import { cleanUp } from '../../support/cleanup.ts';

const IDLE_MS = 200;

/** A client that has sent the head and the first of two bytes of its body. */
async function halfSent(
  context: TestContext,
  serve: (request: IncomingMessage) => Promise<string>,
): Promise<{ readonly client: Socket; readonly answered: Promise<string> }> {
  const { promise: answered, resolve } = Promise.withResolvers<string>();
  const server = createServer((request, response) => {
    serve(request).then(
      (text) => {
        response.end(text);
        resolve(text);
      },
      (error: unknown) => resolve(String(error)),
    );
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  cleanUp(context, () => {
    server.closeAllConnections();
    server.close();
  });
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined);
  client.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na');
  return { client, answered };
}

describe('A body', () => {
  test('that the server is slow to read is not one whose client is silent', async (context) => {
    const { promise: slow, resolve: goOn } = Promise.withResolvers<void>();
    const { client, answered } = await halfSent(context, async (request) => {
      let text = '';
      for await (const chunk of openBody(request, { idleMs: IDLE_MS }).bytes) {
        text += Buffer.from(chunk).toString();
        if (text === 'a') {
          // The pack's layers are fetched, and the client waits like everybody else.
          await sleep(3 * IDLE_MS);
          goOn();
        }
      }
      return text;
    });
    await slow;
    client.write('b');
    assert.equal(await answered, 'ab');
  });

  test('whose client is silent while the server waits for it ends', async (context) => {
    const { answered } = await halfSent(context, async (request) => {
      let text = '';
      for await (const chunk of openBody(request, { idleMs: IDLE_MS }).bytes) text += Buffer.from(chunk).toString();
      return text;
    });
    assert.match(await answered, /aborted/);
  });

  test('whose client is too slow ends with the error of its pace, and its rest is not waited for', async (context) => {
    let isCut = false;
    const pace = {
      asks: () => undefined,
      gets: () => {
        isCut = true;
        throw new GitHttpError(408, 'too slow');
      },
      isCut: () => isCut,
    };
    const { answered } = await halfSent(context, async (request) => {
      const body = openBody(request, { idleMs: 60_000, pace });
      await assert.rejects(async () => {
        for await (const _ of body.bytes) continue;
      }, /too slow/);
      assert.equal(await body.discardRest(1_000), false);
      return 'cut';
    });
    assert.equal(await answered, 'cut');
  });

  test('whose client is silent while the rest is discarded ends as well', async (context) => {
    const { client, answered } = await halfSent(context, async (request) => {
      const body = openBody(request, { idleMs: IDLE_MS });
      for await (const _ of body.bytes) break;
      await body.discardRest(1_000);
      return 'discarded';
    });
    const closed = new Promise((resolve) => client.once('close', resolve));
    assert.equal(await answered, 'discarded');
    await closed;
  });
});
