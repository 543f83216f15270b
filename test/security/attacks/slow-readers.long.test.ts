/**
 * The attack: an account begins a hundred downloads of a large file, or a hundred clones, and reads none of them. Each
 * kept a process of git, and a slot, for as long as its client cared; slots were shared by repository, so two
 * repositories took all of them, and another account's clone timed out.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { READER_SPAN_MS } from '../../../apps/server/slow-readers.ts';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { cleanUp, suiteEnding } from '../../support/cleanup.ts';
import { gitBelow, NO_PROC } from '../../support/git-below.ts';
import { basicAuthorization } from '../../support/git-wire.ts';
import { eventually } from '../../support/processes.ts';
import { skippedFor } from '../../support/skipped.ts';
import { createRepository, git, newWorkTree } from '../../support/strata.ts';

const MIB = 1024 * 1024;
const READERS = 100;
/** A quarter of it is for answers: not enough for all of them. */
const CACHE_BYTES_MAX = 1024 * MIB;
const CUT = 'A client was disconnected, since it read too slowly';
/** More than the system holds of a connection. */
const FILE_BYTES = 24 * MIB;

describe('A hundred clients that read almost nothing', skippedFor(NO_PROC), () => {
  const ending = suiteEnding();
  let stage: Stage;
  let tip: string;

  beforeAll(async () => {
    stage = await setStage(ending, { env: { STRATA_CACHE_BYTES_MAX: String(CACHE_BYTES_MAX) }, plan: 'PRO' });
    const work = await newWorkTree(ending);
    writeFileSync(path.join(work, 'large'), randomBytes(FILE_BYTES));
    await git(work, ['add', 'large']);
    await git(work, ['commit', '--quiet', '-m', 'Large']);
    for (const name of ['one', 'two']) {
      await git(work, ['push', '--quiet', await createRepository(stage.strata, stage.attacker, name), 'main']);
    }
    tip = (await git(work, ['rev-parse', 'main'])).trim();
  });

  const packet = (text: string): string => (text.length + 4).toString(16).padStart(4, '0') + text;

  async function begin(head: readonly string[], body = ''): Promise<Socket> {
    const socket = connect(Number(new URL(stage.strata.url).port), '127.0.0.1');
    cleanUp(ending, () => void socket.destroy());
    socket.on('error', () => undefined);
    socket.write(`${[...head, 'Host: localhost', `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`);
    await Promise.race([once(socket, 'readable'), once(socket, 'close')]);
    // A few bytes, and then no more.
    const start = socket.read(64) as Buffer | null;
    if (start !== null) assert.match(start.toString('latin1'), /^HTTP\/1\.1 200 /);
    return socket;
  }

  const readFile = (number: number): Promise<Socket> => {
    const repository = number % 2 === 0 ? 'one' : 'two';
    const target = `/v1/repos/mallory/${repository}/contents/large?raw=true`;
    return begin([`GET ${target} HTTP/1.1`, `Authorization: Bearer ${stage.attacker.token}`]);
  };

  /** Clones that differ, so that none follows the answer to another. */
  const clone = (number: number): Promise<Socket> => {
    const repository = number % 2 === 0 ? 'one' : 'two';
    const lines = ['no-progress', `want ${tip}`, `have ${number.toString(16).padStart(40, '0')}`, 'done'];
    const body = [packet('command=fetch'), '0001', ...lines.map(packet), '0000'].join('');
    const head = [
      `POST /r/mallory/${repository}.git/git-upload-pack HTTP/1.1`,
      `Authorization: ${basicAuthorization(stage.attacker)}`,
      'Content-Type: application/x-git-upload-pack-request',
      'Git-Protocol: version=2',
    ];
    return begin(head, body);
  };

  for (const [name, read] of [
    ['slow readers of a file', readFile],
    ['slow readers of clones', clone],
  ] as const) {
    test(`have no slot while they read, and are cut: ${name}`, async (context) => {
      await underAttack(
        context,
        stage,
        name,
        async () => {
          const begun = Array.from({ length: READERS }, (_, number) => read(number));
          await sleep(15_000);
          // What found no room goes at the pace of its reader: two processes of the account, each with one below it.
          const left = gitBelow(stage.strata.process.pid);
          await context.annotate(`${left.length} processes of git after 15 s`);
          await sleep(READER_SPAN_MS);
          await eventually('those who read nothing are cut', () => stage.strata.log().includes(CUT));
          for (const socket of begun) void socket.then((opened) => opened.destroy());
          await eventually('git ends', () => gitBelow(stage.strata.process.pid).length <= 2);
        },
        { diskBytesMax: CACHE_BYTES_MAX, processesMax: 80 },
      );
      assert.doesNotMatch(stage.strata.log(), /A request could not be answered now/, 'clients alone cause no outage');
    });
  }
});
