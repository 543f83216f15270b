/** Answers to pushes: compared byte for byte with git's receive-pack, and read by a real client. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { receivePackAdvertisement } from '../../../../core/git/wire/advertisement.ts';
import { type CommandList, type PushCapabilities, readCommandList } from '../../../../core/git/wire/command-list.ts';
import { concatBytes, createPacketReader, dataPacket, FLUSH_PACKET } from '../../../../core/git/wire/pkt-line.ts';
import { piecesOf } from '../../../../core/git/wire/ref-parts.ts';
import {
  pushAnswer,
  pushRefusal,
  REASON_LENGTH_MAX,
  type RefReport,
  reportStatus,
} from '../../../../core/git/wire/report-status.ts';
import { KEEP_ALIVE_PACKET } from '../../../../core/git/wire/side-band.ts';
import { git, temporaryFolder } from '../../../support/git-process.ts';
import { createSampleRepository, refsOf } from '../../../support/sample-repository.ts';

const ZERO = '0'.repeat(40);
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');

describe('The answer to a push', () => {
  const folder = temporaryFolder('report-status');
  afterAll(() => folder.remove());

  /** Returns git's own answer to a push that deletes refs, some of which do not exist or have invalid names. */
  function ofGit(capabilities: string, names: readonly string[]): string {
    const path = createSampleRepository(folder.path, `${capabilities.replaceAll(' ', '-')}.git`);
    const main = git(['rev-parse', 'main'], { cwd: path }).toString().trim();
    const lines = names.map((name, index) => `${main} ${ZERO} ${name}${index === 0 ? `\0${capabilities}` : ''}`);
    const input = concatBytes([...lines.map(dataPacket), FLUSH_PACKET]);
    return text(git(['-c', 'receive.denyDeleteCurrent=ignore', 'receive-pack', '--stateless-rpc', path], { input }));
  }

  const refs: readonly RefReport[] = [
    { name: 'refs/heads/main', refused: null },
    { name: 'refs/heads/a b', refused: 'funny refname' },
    { name: 'refs/heads/feature/é', refused: 'failed to update ref' },
  ];
  const capabilities = (reportStatus: PushCapabilities['reportStatus'], sideBand64k: boolean): PushCapabilities => {
    return { reportStatus, sideBand64k, quiet: true, atomic: false, pushOptions: false };
  };

  for (const status of ['report-status', 'report-status-v2'] as const) {
    test(`is equal to git's without a side band: ${status}`, () => {
      const golden = ofGit(
        status,
        refs.map(({ name }) => String(name)),
      );
      assert.match(golden, /^000eunpack ok\n0017ok refs\/heads\/main\n/);
      assert.equal(text(pushAnswer({ unpackFailed: null, refs }, capabilities(status, false))), golden);
    });
  }

  test("is equal to git's in the side band, with the flushes of the report and of the side band", () => {
    const names = refs.map(({ name }) => String(name));
    // git's messages on band 2 come first; the report follows them.
    const golden = ofGit('report-status side-band-64k quiet', names);
    const answer = text(pushAnswer({ unpackFailed: null, refs }, capabilities('report-status', true)));
    assert.ok(answer.slice(4).startsWith('\u0001000eunpack ok\n'));
    assert.ok(golden.endsWith(answer));
    assert.ok(answer.endsWith('00000000'));
    assert.equal(text(pushAnswer({ unpackFailed: null, refs: [] }, capabilities('none', true))), '0000');
    assert.equal(text(pushAnswer({ unpackFailed: null, refs: [] }, capabilities('none', false))), '');
  });

  test('has a reason whole up to the limit, and cuts a longer one', () => {
    const whole = 'y'.repeat(REASON_LENGTH_MAX);
    for (const refused of [whole, `${whole}y`]) {
      const report = text(reportStatus({ unpackFailed: null, refs: [{ name: 'refs/heads/x', refused }] }));
      assert.match(report, new RegExp(`ng refs/heads/x ${whole}\\n`), `${refused.length}`);
    }
  });

  test('attack: with hostile names and reasons holds no forged line and no broken packet', () => {
    const hostile: RefReport[] = [
      { name: 'refs/heads/x\nok refs/heads/y', refused: 'a\n0000ok refs/heads/z\u001b[1m' },
      { name: new Uint8Array(65_434).fill(0x78), refused: 'y'.repeat(5_000) },
      { name: Uint8Array.of(0xe9, 0x07), refused: '' },
    ];
    const packets = createPacketReader(reportStatus({ unpackFailed: 'b\nc', refs: hostile }));
    const lines: string[] = [];
    for (let packet = packets.next(); packet !== 'end'; packet = packets.next()) {
      assert.ok('kind' in packet);
      lines.push(packet.kind === 'data' ? Buffer.from(packet.payload).toString('latin1') : packet.kind);
    }
    assert.equal(lines[0], 'unpack b c\n');
    assert.equal(lines[1], 'ng refs/heads/x?ok refs/heads/y a 0000ok refs/heads/z [1m\n');
    assert.equal(lines[2], `ng ${'x'.repeat(65_434)} ${'y'.repeat(65_515 - 65_434 - 4)}\n`);
    assert.equal(lines[3], 'ng \u00e9? refused\n');
    assert.deepEqual(lines.slice(4), ['flush']);
  });
});

describe('A real client that pushes', () => {
  const folder = temporaryFolder('push-client');
  let path: string;
  let seen: CommandList | null = null;
  let packBytes = 0;
  /** Makes the answer of the test's server after it has read the push. */
  let answer: (list: CommandList) => Uint8Array = () => FLUSH_PACKET;
  const server = createServer((request, response) => {
    const body = request.headers['content-encoding'] === 'gzip' ? request.pipe(createGunzip()) : request;
    void (async () => {
      if (request.method === 'GET') {
        response.setHeader('content-type', 'application/x-git-receive-pack-advertisement');
        response.end(
          Buffer.concat([
            ...piecesOf(
              receivePackAdvertisement(
                { head: 'refs/heads/main', runs: [refsOf(path)] },
                { version: 0, agent: 'strata/1' },
              ),
            ),
          ]),
        );
        return;
      }
      const { list, rest } = await readCommandList(body, () => null);
      response.setHeader('content-type', 'application/x-git-receive-pack-result');
      if ('refused' in list) {
        response.end(pushRefusal(list.detail, list.capabilities, []));
        return;
      }
      packBytes = 0;
      for await (const chunk of rest) packBytes += chunk.length;
      const probe = list.commands.length + list.refusedCommands.length === 0;
      if (!probe) seen = list;
      response.end(probe ? undefined : answer(list));
    })().catch((error: unknown) => response.destroy(error as Error));
  });

  beforeAll(async () => {
    path = createSampleRepository(folder.path);
    git(['clone', '--quiet', '--mirror', path, join(folder.path, 'client.git')]);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
    folder.remove();
  });

  async function push(...args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
    seen = null;
    const address = server.address();
    assert.ok(address !== null && typeof address === 'object');
    const url = `http://127.0.0.1:${address.port}/sample.git`;
    const env = { PATH: process.env['PATH'], HOME: folder.path, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' };
    return new Promise((resolve) => {
      execFile(
        'git',
        ['push', '--porcelain', ...args.slice(0, -1), url, ...(args.at(-1) ?? '').split(' ')],
        {
          cwd: join(folder.path, 'client.git'),
          env,
        },
        (_, stdout, stderr) => resolve({ stdout, stderr }),
      );
    });
  }

  const report = (list: CommandList, refused: (ref: string) => string | null, messages: readonly string[] = []) => {
    const refs: RefReport[] = list.commands.map(({ ref }) => ({ name: ref, refused: refused(ref) }));
    for (const { name, detail } of list.refusedCommands) refs.push({ name, refused: detail });
    return pushAnswer({ unpackFailed: null, refs }, list.capabilities, messages);
  };

  test('gets a result for each ref, including invalid names, and displays messages', async () => {
    answer = (list) =>
      concatBytes([
        KEEP_ALIVE_PACKET,
        report(list, (ref) => (ref.endsWith('b') ? 'moved by\nsomeone' : null), ['welcome']),
      ]);
    const { stdout, stderr } = await push('main:refs/heads/a main:refs/heads/b main:refs/heads/x/-y');
    assert.match(stdout, /\*\t.*:refs\/heads\/a\t\[new branch\]/);
    assert.match(stdout, /!\t.*:refs\/heads\/b\t\[remote rejected\] \(moved by someone\)/);
    assert.match(
      stdout,
      /!\t.*:refs\/heads\/x\/-y\t\[remote rejected\] \(a component of the name starts with a dash\)/,
    );
    assert.match(stderr, /remote: welcome/);
    assert.equal(seen?.capabilities.reportStatus, 'report-status-v2');
    assert.equal(seen.packFollows, true);
    assert.ok(packBytes >= 32);
  });

  test('only deletions sends no pack, and its options arrive', async () => {
    answer = (list) => report(list, () => null);
    const { stdout } = await push('-o', 'first', '-o', 'sécond', '--atomic', '--delete', 'refs/heads/dev');
    assert.match(stdout, /-\t:refs\/heads\/dev\t\[deleted\]/);
    assert.deepEqual([seen?.packFollows, packBytes, seen?.pushOptions], [false, 0, ['first', 'sécond']]);
    assert.equal(seen?.capabilities.atomic, true);
    assert.equal(seen.commands[0]?.after, null);
  });

  test('thousands of refs reads a report of several side-band packets', async () => {
    answer = (list) => report(list, (ref) => (ref.endsWith('77') ? 'no' : null));
    const refspecs = Array.from({ length: 1_500 }, (_, index) => `main:refs/heads/many/a-rather-long-name-${index}`);
    const { stdout } = await push(refspecs.join(' '));
    assert.equal(stdout.match(/\[new branch\]/g)?.length, 1_485);
    assert.equal(stdout.match(/\[remote rejected\] \(no\)/g)?.length, 15);
  });

  test('and is refused as a whole displays the reason', async () => {
    const refs = [{ name: 'refs/heads/q', refused: 'unpacker error' }];
    answer = (list) => pushRefusal('the quota is used up', list.capabilities, refs);
    const { stdout, stderr } = await push('main:refs/heads/q');
    assert.match(stderr, /remote unpack failed: the quota is used up/);
    assert.match(stdout, /!\t.*:refs\/heads\/q\t\[remote rejected\] \(unpacker error\)/);
    answer = (list) => pushRefusal('the quota is used up', { ...list.capabilities, reportStatus: 'none' }, refs);
    assert.match((await push('main:refs/heads/q')).stderr, /remote: the quota is used up/);
  });
});
