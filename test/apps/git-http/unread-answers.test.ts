/**
 * The attack: a push of 3,900 refs with names of 4 KB, 88 KB as gzip, makes each answer about them 15 MB. 512 clients
 * that asked and did not read held 8 GB, since each answer was made whole; so did answers of the API, up to 8 MiB each.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import {
  COUNTED_BYTES_MIN,
  createUnsentBudget,
  holdUnsent,
  UNSENT_BOUNDS,
} from '../../../apps/front-door/unsent-budget.ts';
import { type AccountId, objectId } from '../../../core/kernel/ids.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { cleanUp, suiteEnding } from '../../support/cleanup.ts';
import { garbageCollection } from '../../support/garbage-collection.ts';
import { type GitFixture, startGit } from '../../support/git-fixture.ts';
import { basicAuthorization, packet } from '../../support/git-wire.ts';

const MIB = 1024 * 1024;
const REFS = 3_900;
const READERS = 32;

describe('Clients that do not read', () => {
  const ending = suiteEnding();
  let fixture: ApiFixture;
  let git: GitFixture;
  let token: TestToken;
  let mallory: AccountId;

  beforeAll(async () => {
    fixture = await createApiFixture();
    cleanUp(ending, () => fixture.close());
    mallory = await fixture.account('mallory');
    const repository = await fixture.repository(mallory, 'engine');
    const id = objectId('1'.repeat(40));
    const folder = Array.from({ length: 16 }, () => 'x'.repeat(240)).join('/');
    const names = Array.from({ length: REFS }, (_, n) => `refs/heads/${folder}/${n}`);
    for (let at = 0; at < REFS; at += 200) {
      await fixture.push(repository, Object.fromEntries(names.slice(at, at + 200).map((name) => [name, id])));
    }
    token = await fixture.token(mallory);
    git = await startGit(fixture);
    cleanUp(ending, () => git.close());
  });

  const lsRefs = (prefix: string): string =>
    `${packet('command=ls-refs')}0001${packet('peel')}${packet(`ref-prefix ${prefix}`)}0000`;
  const headOf = (method: string, target: string, body: string): string =>
    [
      `${method} ${target} HTTP/1.1`,
      'Host: localhost',
      `Authorization: ${basicAuthorization({ username: 'mallory', token: token.secret })}`,
      'Content-Type: application/x-git-upload-pack-request',
      'Git-Protocol: version=2',
      `Content-Length: ${body.length}\r\n\r\n${body}`,
    ].join('\r\n');

  for (const [what, request] of [
    ['advertisements', () => headOf('GET', '/r/mallory/engine.git/info/refs?service=git-receive-pack', '')],
    ['ls-refs', () => headOf('POST', '/r/mallory/engine.git/git-upload-pack', lsRefs('refs/'))],
    [
      'ls-refs of prefixes',
      (n: number) =>
        headOf('POST', '/r/mallory/engine.git/git-upload-pack', lsRefs(`refs/${'heads/x'.slice(0, n % 7)}`)),
    ],
  ] as const) {
    test(`hold a piece each, not an answer: ${what}`, async () => {
      const collect = garbageCollection();
      collect();
      const before = process.memoryUsage();
      const sockets: Socket[] = [];
      try {
        await Promise.all(
          Array.from({ length: READERS }, async (_, n) => {
            const socket = connect(git.port, '127.0.0.1');
            sockets.push(socket);
            socket.on('error', () => undefined);
            socket.write(request(n));
            await once(socket, 'readable');
          }),
        );
        await sleep(1_000);
        collect();
        // What was collected is given back in the background.
        await sleep(200);
        collect();
        const after = process.memoryUsage();
        const held = after.arrayBuffers - before.arrayBuffers;
        const heap = after.heapUsed - before.heapUsed;
        // A piece of 96 KiB and what the sockets of both sides hold.
        assert.ok(held < READERS * 512 * 1024, `${held} bytes`);
        assert.ok(heap < 64 * MIB, `${heap} bytes of heap`);
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    });
  }

  test('who read it get it whole', async () => {
    const { status, headers, text } = await git.request(
      'GET',
      '/r/mallory/engine.git/info/refs?service=git-receive-pack',
      token,
    );
    assert.equal(status, 200);
    assert.ok(git.finished.some(({ requestId }) => requestId === headers.get('x-request-id')));
    assert.equal(text.match(/refs\/heads\//g)?.length, REFS);
    assert.ok(text.endsWith('0000'));
  });

  test('have a part of the memory for answers of the API, and short ones beside it', async () => {
    const { unsentBudget } = fixture.context;
    for (let n = 0; n < 99; n += 1) await fixture.token(mallory, { name: 'x'.repeat(100) });
    const read = () => fixture.request('GET', '/v1/access-tokens?limit=100', token);
    const whole = await read();
    assert.equal(whole.statusCode, 200);
    assert.ok(whole.payload.length > COUNTED_BYTES_MIN);
    const other = await fixture.account('grace');
    const held = unsentBudget.hold({ account: mallory }, 'x'.repeat(UNSENT_BOUNDS.accounts.account.bytesMax));
    assert.ok('release' in held);
    const refused = await read();
    assert.deepEqual([refused.statusCode, refused.headers['retry-after']], [429, '5']);
    assert.match(refused.json().detail, /Too many bytes of answers/);
    assert.equal((await fixture.request('GET', '/v1/repositories', token)).statusCode, 200);
    const free = unsentBudget.hold({ account: other }, 'x'.repeat(MIB));
    assert.ok('release' in free);
    free.release();
    // Git's answer about refs is made in pieces instead.
    const { text } = await git.request('GET', '/r/mallory/engine.git/info/refs?service=git-receive-pack', token);
    assert.ok(text.endsWith('0000'));
    held.release();
    assert.equal((await read()).statusCode, 200);
    assert.equal(unsentBudget.heldBytes(), 0);
  });

  test('hold an answer from the least length that counts on, and no shorter one', () => {
    const budget = createUnsentBudget();
    const hold = (bytes: number) =>
      holdUnsent(
        budget,
        new ServerResponse(new IncomingMessage(new Socket())),
        { account: mallory },
        Buffer.alloc(bytes),
      );
    assert.equal(hold(COUNTED_BYTES_MIN - 1), null);
    assert.equal(budget.heldBytes(), 0);
    assert.equal(hold(COUNTED_BYTES_MIN), null);
    assert.equal(budget.heldBytes(), COUNTED_BYTES_MIN);
  });

  test('hold the same bytes once, and until the last of them has gone', () => {
    const { unsentBudget } = fixture.context;
    const bytes = new Uint8Array(8 * MIB);
    const holds = Array.from({ length: 100 }, () => unsentBudget.hold({ account: mallory }, bytes));
    assert.equal(unsentBudget.heldBytes(), bytes.length);
    for (const held of holds) {
      assert.equal(unsentBudget.heldBytes(), bytes.length);
      assert.ok('release' in held);
      held.release();
      held.release();
    }
    assert.equal(unsentBudget.heldBytes(), 0);
  });
});
