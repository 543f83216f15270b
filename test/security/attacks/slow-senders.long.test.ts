/**
 * The attack: an account begins 100 pushes to two repositories, sends the first 200 KiB of each pack, and then a byte
 * every ten seconds. A process waited for each of them, so nobody else's clone or push got one.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { PUSH_PACE_SPAN_MS } from '../../../apps/git-http/limits.ts';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { cleanUp, suiteEnding } from '../../support/cleanup.ts';
import { gitBelow, NO_PROC } from '../../support/git-below.ts';
import { basicAuthorization, blob, commandList, commit, pack, tree, wirePush } from '../../support/git-wire.ts';
import { skippedFor } from '../../support/skipped.ts';
import { createRepository } from '../../support/strata.ts';

const PUSHES = 100;
const START_BYTES = 200 * 1024;
const BYTE_EVERY_MS = 10_000;
const MIB = 1024 * 1024;

interface SlowPush {
  readonly socket: Socket;
  readonly answered: Promise<string>;
}

describe('Pushes of a byte in ten seconds', skippedFor(NO_PROC), () => {
  const ending = suiteEnding();
  let stage: Stage;

  beforeAll(async () => {
    stage = await setStage(ending);
    for (const name of ['one', 'two']) await createRepository(stage.strata, stage.attacker, name);
  });

  test('have no process, are cut, and others push and clone in between', async (context) => {
    const { strata, attacker, other } = stage;
    const file = blob(randomBytes(2 * START_BYTES));
    const root = tree([{ mode: '100644', name: 'file', id: file.id }]);
    const tip = commit('slow', root.id);
    const packed = pack([tip, root, file]);
    const begin = (index: number): SlowPush => {
      const name = index % 2 === 0 ? 'one' : 'two';
      const body = Buffer.concat([commandList([{ ref: `refs/heads/b${index}`, after: tip.id }]), packed]);
      const head = [
        `POST /r/${attacker.username}/${name}.git/git-receive-pack HTTP/1.1`,
        'Host: localhost',
        `Authorization: ${basicAuthorization(attacker)}`,
        'Content-Type: application/x-git-receive-pack-request',
        `Content-Length: ${body.length}`,
      ];
      const socket = connect(Number(new URL(strata.url).port), '127.0.0.1');
      const { promise: answered, resolve } = Promise.withResolvers<string>();
      let text = '';
      socket.on('data', (chunk) => (text += chunk.toString('latin1')));
      socket.on('error', () => undefined);
      socket.on('close', () => resolve(text));
      socket.write(`${head.join('\r\n')}\r\n\r\n`);
      socket.write(body.subarray(0, START_BYTES));
      return { socket, answered };
    };

    let gitOfPushes = 0;
    let answers: readonly string[] = [];
    const attack = async () => {
      const pushes = Array.from({ length: PUSHES }, (_, index) => begin(index));
      cleanUp(context, () => {
        for (const { socket } of pushes) socket.destroy();
      });
      const end = performance.now() + PUSH_PACE_SPAN_MS + 2 * BYTE_EVERY_MS;
      for (let nextByte = performance.now(); performance.now() < end; await sleep(500)) {
        gitOfPushes = Math.max(gitOfPushes, gitBelow(strata.process.pid).filter((git) => git === 'index-pack').length);
        if (performance.now() < nextByte) continue;
        nextByte += BYTE_EVERY_MS;
        for (const { socket } of pushes) if (socket.writable) socket.write('x');
        const small = commit(`meanwhile ${nextByte}`);
        const target = { strata, account: other, name: stage.repository };
        const empty = { type: 'tree' as const, bytes: Buffer.alloc(0), id: '4b825dc642cb6eb9a060e54bf8d69288fbee4904' };
        const ref = `refs/heads/at${Math.round(nextByte)}`;
        const report = await wirePush(target, [{ ref, after: small.id }], [small, empty]);
        assert.equal(report.refs.get(ref), 'ok', report.remote);
      }
      answers = await Promise.all(
        pushes.map(({ socket, answered }) => {
          socket.destroy();
          return answered;
        }),
      );
    };
    // 200 KiB of each push, and what the other account stores.
    const bounds = { processesMax: 16, diskBytesMax: 64 * MIB, eventsMax: 200 };
    await underAttack(context, stage, `${PUSHES} pushes of a byte in 10 s`, attack, bounds);
    // The other account's small pushes have one for some milliseconds.
    assert.ok(gitOfPushes <= 2, `${gitOfPushes} processes`);
    const cut = answers.filter((answer) => /^HTTP\/1\.1 (429|503) |unpack The push sent/.test(answer));
    assert.equal(
      cut.length,
      PUSHES,
      answers.find((answer) => !cut.includes(answer)),
    );
    assert.ok(answers.some((answer) => /less than 4 KiB\/s over 60 s: nothing was changed/.test(answer)));
  });
});
