/**
 * The attack: one push of 3,900 refs with names of 4 KB, 88 KB as gzip. Each answer about them is 15 MB, and was made
 * whole: 512 clients that asked for it and did not read held 8 GB.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { basicAuthorization, commit, packet, wirePush } from '../../support/git-wire.ts';
import { createRepository } from '../../support/strata.ts';

const REFS = 3_900;
/** The number that an account may have at the same time. */
const READERS = 500;
const SPAN_MS = 20_000;

describe('Clients that ask for many long refs and do not read', () => {
  test('hold a small piece of the answer each', async (context) => {
    const stage = await setStage(context);
    await createRepository(stage.strata, stage.attacker, 'engine');
    const target = { strata: stage.strata, account: stage.attacker, name: 'engine' };
    const tip = commit('tip');
    const folder = Array.from({ length: 16 }, () => 'x'.repeat(240)).join('/');
    const commands = Array.from({ length: REFS }, (_, n) => ({ ref: `refs/heads/${folder}/${n}`, after: tip.id }));
    const pushed = await wirePush(target, commands, [tip]);
    assert.deepEqual(new Set(pushed.refs.values()), new Set(['ok']), pushed.remote);
    await underAttack(context, stage, `${READERS} unread answers about ${REFS} refs of 4 KB`, async () => {
      const sockets: Socket[] = [];
      cleanUp(context, () => {
        for (const socket of sockets) socket.destroy();
      });
      for (let n = 0; n < READERS; n += 1) sockets.push(await begin(stage, n % 2 === 0 ? ADVERTISEMENT : LS_REFS));
      await sleep(SPAN_MS);
      for (const socket of sockets) socket.destroy();
    });
  });
});

interface Asked {
  readonly line: string;
  readonly body: string;
}

const ADVERTISEMENT: Asked = { line: 'GET /r/mallory/engine.git/info/refs?service=git-receive-pack', body: '' };
const LS_REFS: Asked = {
  line: 'POST /r/mallory/engine.git/git-upload-pack',
  body: `${packet('command=ls-refs')}0001${packet('peel')}0000`,
};

/** Resolves when the answer begins, of which nothing is read. */
async function begin({ strata, attacker }: Stage, { line, body }: Asked): Promise<Socket> {
  const socket = connect(Number(new URL(strata.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  const head = [
    `${line} HTTP/1.1`,
    'Host: localhost',
    `Authorization: ${basicAuthorization(attacker)}`,
    'Content-Type: application/x-git-upload-pack-request',
    'Git-Protocol: version=2',
    `Content-Length: ${body.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  await Promise.race([once(socket, 'readable'), once(socket, 'close')]);
  return socket;
}
