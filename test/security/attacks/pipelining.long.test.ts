/**
 * The attack: 204 KB of pipelined requests, some 4,000, on one connection, again and again, by a stranger and by an
 * account. Node parses them as they come, and the server began all of them immediately: of one such connection another
 * account's read waited for 15 s.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, test } from 'vitest';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';

const BYTES = 204 * 1024;
const CONNECTIONS = 20;
const SPAN_MS = 20_000;

describe('Somebody who pipelines requests', () => {
  for (const { name, request } of [
    { name: 'scrapes of a stranger', request: () => 'GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n' },
    {
      name: 'reads of an account',
      request: ({ attacker }: Stage) =>
        `GET /v1/repositories HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${attacker.token}\r\n\r\n`,
    },
    { name: 'the sign-in page, by a stranger', request: () => 'GET /sign-in HTTP/1.1\r\nHost: a\r\n\r\n' },
  ]) {
    test(`has those of one connection answered one by one: ${name}`, async (context) => {
      const stage = await setStage(context);
      const one = request(stage);
      const text = one.repeat(Math.ceil(BYTES / one.length));
      let ended = 0;
      await underAttack(context, stage, `pipelining: ${name}`, async () => {
        const until = performance.now() + SPAN_MS;
        const attack = async (): Promise<void> => {
          while (performance.now() < until) {
            await pour(stage, text);
            ended += 1;
          }
        };
        await Promise.all(Array.from({ length: CONNECTIONS }, attack));
      });
      assert.ok(ended > 0, 'no connection was ended');
    });
  }
});

/** Sends the text on a connection, reads what comes, and resolves when the connection has ended. */
function pour({ strata }: Stage, text: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(strata.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.once('close', () => resolve());
    socket.resume();
    socket.setTimeout(10_000, () => socket.destroy());
    socket.write(text);
  });
}
