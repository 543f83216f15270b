/**
 * The attack: somebody on the machine, who needs no account, writes 204 KB of pipelined `GET /metrics` and hardly reads
 * what comes back. Each scrape cost nine queries and 60 KB of text, so that one such connection held every other
 * account up for fifteen seconds. Here eight connections do it at the same time, again and again; then the same with
 * `/readyz`.
 */
import { connect } from 'node:net';
import { test } from 'vitest';
import { setStage, underAttack } from '../../support/attack.ts';

const PIPELINE_BYTES = 204 * 1024;
const CONNECTIONS = 8;
const ROUNDS = 10;

/** Writes the pipeline, reads slowly, and resolves when the connection is closed. */
async function scrape(port: number, target: string): Promise<void> {
  const one = `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  const requests = Math.floor(PIPELINE_BYTES / one.length);
  const last = `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
  const socket = connect(port, '127.0.0.1');
  // The server may close before it has read everything.
  socket.on('error', () => undefined);
  socket.on('data', () => {
    socket.pause();
    setTimeout(() => socket.resume(), 1);
  });
  socket.write(one.repeat(requests) + last);
  await new Promise((resolve) => socket.once('close', resolve));
}

for (const target of ['/metrics', '/readyz']) {
  test(`Pipelined requests for ${target} hold nobody up`, { timeout: 180_000 }, async (context) => {
    const stage = await setStage(context);
    const port = Number(new URL(stage.strata.url).port);
    const attack = async (): Promise<void> => {
      for (let round = 0; round < ROUNDS; round += 1) {
        await Promise.all(Array.from({ length: CONNECTIONS }, () => scrape(port, target)));
      }
    };
    await underAttack(context, stage, `${CONNECTIONS} pipelines of ${target}, ${ROUNDS} times`, attack, {
      diskBytesMax: 8 * 1024 * 1024,
      eventsMax: 0,
    });
  });
}
