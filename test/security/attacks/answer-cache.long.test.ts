/**
 * The attack: clones of one repository, each of another depth, that are begun and read by nobody. Each answer grew on
 * disk as fast as git made it and counted only when it was whole: a bound of 64 MiB held 1,250 MB.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { cleanUp, suiteEnding } from '../../support/cleanup.ts';
import { gitBelow, NO_PROC } from '../../support/git-below.ts';
import { basicAuthorization } from '../../support/git-wire.ts';
import { eventually } from '../../support/processes.ts';
import { skippedFor } from '../../support/skipped.ts';
import { createRepository, git, newWorkTree } from '../../support/strata.ts';

const MIB = 1024 * 1024;
const ANSWERS_BYTES_MAX = 64 * MIB;
const CLONES = 40;
const COMMITS = 20;

describe('Clones that nobody reads', skippedFor(NO_PROC), () => {
  const ending = suiteEnding();
  let stage: Stage;
  let tip: string;

  beforeAll(async () => {
    // A quarter of the cache, in addition to it.
    stage = await setStage(ending, { env: { STRATA_CACHE_BYTES_MAX: String(4 * ANSWERS_BYTES_MAX) } });
    const work = await newWorkTree(ending);
    for (let commit = 0; commit < COMMITS; commit += 1) {
      writeFileSync(path.join(work, `noise-${commit}`), randomBytes(2 * MIB));
      await git(work, ['add', '.']);
      await git(work, ['commit', '--quiet', '-m', `Commit ${commit}`]);
    }
    await git(work, ['push', '--quiet', await createRepository(stage.strata, stage.attacker, 'large'), 'main']);
    tip = (await git(work, ['rev-parse', 'main'])).trim();
  });

  const packet = (text: string): string => (text.length + 4).toString(16).padStart(4, '0') + text;

  /** Begins a clone of which only the beginning is read. */
  async function begin(number: number): Promise<Socket> {
    const lines = ['no-progress', 'ofs-delta', `want ${tip}`, `deepen ${1 + (number % COMMITS)}`];
    // Others than those before it: the answer is another one.
    if (number >= COMMITS) lines.push('thin-pack');
    const body = [packet('command=fetch'), '0001', ...lines.map(packet), packet('done'), '0000'].join('');
    const socket = connect(Number(new URL(stage.strata.url).port), '127.0.0.1');
    cleanUp(ending, () => void socket.destroy());
    socket.on('error', () => undefined);
    const head = [
      'POST /r/mallory/large.git/git-upload-pack HTTP/1.1',
      'Host: localhost',
      `Authorization: ${basicAuthorization(stage.attacker)}`,
      'Content-Type: application/x-git-upload-pack-request',
      'Git-Protocol: version=2',
      `Content-Length: ${body.length}`,
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
    await once(socket, 'readable');
    return socket;
  }

  /** The answers of the cache, and those without a name that the server still has open. */
  function onDisk(): number {
    const folder = path.join(stage.strata.dataDir, 'cache', 'answers');
    const files = new Map<number, number>();
    const note = (file: string): void => {
      try {
        const { ino, size } = statSync(file);
        files.set(ino, size);
      } catch {
        // It is gone by now.
      }
    };
    for (const name of readdirSync(folder)) note(path.join(folder, name));
    const open = `/proc/${stage.strata.process.pid}/fd`;
    for (const name of readdirSync(open)) {
      try {
        if (readlinkSync(path.join(open, name)).startsWith(folder)) note(path.join(open, name));
      } catch {
        // It is closed by now.
      }
    }
    return [...files.values()].reduce((sum, size) => sum + size, 0);
  }

  test('take no more disk than the bound, and few processes', async (context) => {
    let most = 0;
    let isOver = false;
    const looking = (async () => {
      while (!isOver) {
        most = Math.max(most, onDisk());
        await sleep(20);
      }
    })();
    await underAttack(
      context,
      stage,
      'clones that nobody reads',
      async () => {
        const sockets = Array.from({ length: CLONES }, (_, number) => begin(number));
        const begun = await Promise.race([Promise.all(sockets), sleep(20_000)]);
        await sleep(5_000);
        assert.ok(gitBelow(stage.strata.process.pid).length <= 60);
        for (const socket of begun ?? []) socket.destroy();
        if (begun === undefined) for (const socket of sockets) void socket.then((opened) => opened.destroy());
      },
      { diskBytesMax: 4 * ANSWERS_BYTES_MAX },
    );
    isOver = true;
    await looking;
    await context.annotate(`${Math.round(most / MIB)} MiB on disk at most`);
    assert.ok(most > 0 && most <= ANSWERS_BYTES_MAX, `${most} bytes of answers`);
    await eventually('git ends when nobody reads', () => gitBelow(stage.strata.process.pid).length === 0);
  });
});
