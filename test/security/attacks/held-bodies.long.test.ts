/**
 * The attack: forty fetches of 32 KB each, which are gzip of 32 MB of zeros, whose last bytes come at 5 a minute. Each
 * was inflated into memory and stayed there for as long as its client liked: 460 to 1,663 MB. The same with fetches
 * whose packets are well-formed, so that only their number tells, and with bodies of the API that never end; and with
 * pushes of 100,000 commands, 286 KB each, which held 20 MiB each.
 */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, test } from 'vitest';
import { dataPacket } from '../../../core/git/wire/pkt-line.ts';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { commandList } from '../../support/git-wire.ts';
import { createRepository } from '../../support/strata.ts';

const REQUESTS = 40;
const SPAN_MS = 75_000;
const INFLATED_BYTES = 31 * 1024 * 1024;

/** The start of a fetch by protocol v2 that goes on with haves. */
function manyHaves(): Buffer {
  const have = dataPacket(`have ${'1'.repeat(40)}\n`);
  const count = Math.floor(INFLATED_BYTES / have.length);
  return Buffer.concat([
    dataPacket('command=fetch'),
    Buffer.from('0001'),
    dataPacket(`want ${'2'.repeat(40)}\n`),
    ...Array.from({ length: count }, () => have),
  ]);
}

describe('Somebody who holds bodies open', () => {
  for (const { name, bytes } of [
    { name: 'zeros', bytes: () => Buffer.alloc(INFLATED_BYTES) },
    { name: 'haves', bytes: manyHaves },
  ]) {
    test(`of fetches of gzipped ${name} gets no more memory than there is for one account`, async (context) => {
      const stage = await setStage(context);
      await createRepository(stage.strata, stage.attacker, 'engine');
      const body = gzipSync(bytes());
      const head = headOf(stage, '/r/mallory/engine.git/git-upload-pack', [
        'Content-Type: application/x-git-upload-pack-request',
        'Content-Encoding: gzip',
        'Git-Protocol: version=2',
        `Content-Length: ${body.length}`,
      ]);
      const statuses = new Map<string, number>();
      await underAttack(context, stage, `held bodies: ${REQUESTS} fetches of gzipped ${name}`, () =>
        hold(stage, statuses, head, body),
      );
      assert.equal(statuses.get('open') ?? 0, 0, 'one was held open for longer than a minute');
    });
  }

  test('of pushes gets no more either, and no list is held for longer than its size allows', async (context) => {
    const stage = await setStage(context);
    await createRepository(stage.strata, stage.attacker, 'engine');
    const commands = Array.from({ length: 100_000 }, (_, n) => ({ ref: `refs/heads/branch-${n}` }));
    const list = commandList(commands);
    const body = gzipSync(list.subarray(0, -4));
    const head = headOf(stage, '/r/mallory/engine.git/git-receive-pack', [
      'Content-Type: application/x-git-receive-pack-request',
      'Content-Encoding: gzip',
      `Content-Length: ${body.length + 100}`,
    ]);
    const statuses = new Map<string, number>();
    await underAttack(context, stage, `held bodies: ${5 * REQUESTS} pushes of 100,000 commands`, () =>
      // After a minute of waiting these are slow pushes, of which 16 may go on, and after another one too slow.
      hold(stage, statuses, head, body, 5 * REQUESTS, 3 * SPAN_MS),
    );
    // The lists grow side by side, so each may find no room; that is told in a report, whose status is 200.
    assert.equal(statuses.get('open') ?? 0, 0, JSON.stringify([...statuses]));
  });

  test('of the API gets no more either', async (context) => {
    const stage = await setStage(context);
    const body = Buffer.alloc(1024 * 1024, ' ');
    const head = headOf(stage, '/v1/repositories', [
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]);
    const statuses = new Map<string, number>();
    await underAttack(context, stage, `held bodies: ${10 * REQUESTS} requests of the API`, () =>
      hold(stage, statuses, head, body, 10 * REQUESTS),
    );
    assert.ok((statuses.get('429') ?? 0) > 0 && (statuses.get('408') ?? 0) > 0, JSON.stringify([...statuses]));
    assert.equal(statuses.get('open') ?? 0, 0, 'one was held open for longer than a minute');
  });
});

function headOf({ strata, attacker }: Stage, target: string, headers: readonly string[]): string {
  const basic = Buffer.from(`mallory:${attacker.token}`).toString('base64');
  const authorization = target.startsWith('/r/') ? `Basic ${basic}` : `Bearer ${attacker.token}`;
  const lines = [`POST ${target} HTTP/1.1`, `Host: ${new URL(strata.url).host}`, `Authorization: ${authorization}`];
  return `${[...lines, ...headers].join('\r\n')}\r\n\r\n`;
}

/** Sends all but the last bytes of the body on each connection, and those at 5 a minute. */
async function hold(
  { strata }: Stage,
  statuses: Map<string, number>,
  head: string,
  body: Buffer,
  count = REQUESTS,
  spanMs = SPAN_MS,
): Promise<void> {
  const port = Number(new URL(strata.url).port);
  const sockets: Socket[] = [];
  const open = new Set<Socket>();
  for (let n = 0; n < count; n += 1) {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    open.add(socket);
    let answer = '';
    socket.on('data', (chunk) => {
      if (answer === '') {
        answer = /^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1'))?.[1] ?? 'unreadable';
        statuses.set(answer, (statuses.get(answer) ?? 0) + 1);
      }
    });
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
    socket.write(head);
    socket.write(body.subarray(0, body.length - 20));
  }
  for (let waitedMs = 0; waitedMs < spanMs && open.size > 0; waitedMs += 1_000) {
    await sleep(1_000);
    if (waitedMs % 12_000 === 0) for (const socket of open) socket.write('x');
  }
  if (open.size > 0) statuses.set('open', open.size);
  for (const socket of sockets) socket.destroy();
}
