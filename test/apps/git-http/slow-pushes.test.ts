/** Pushes over slow links: which are taken, which of too many gives way, and that git shows why. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import {
  createSlowPushes,
  SLOW_PUSHES_OF_ACCOUNT_MAX,
  SLOW_PUSHES_OF_NETWORK_MAX,
  SLOW_PUSHES_OF_WIDE_NETWORK_MAX,
  type SlowPush,
} from '../../../apps/front-door/slow-pushes.ts';
import { PUSH_BYTES_PER_SECOND_MIN, PUSH_PACE_SPAN_MS } from '../../../apps/git-http/limits.ts';
import { SLOW_PUSH_BYTES_PER_SECOND_MAX } from '../../../apps/git-http/push-pace.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { createFakeObjects } from '../../support/fake-objects.ts';
import { type GitFixture, startGit } from '../../support/git-fixture.ts';
import { basicAuthorization, commandList, commit } from '../../support/git-wire.ts';
import { eventually } from '../../support/processes.ts';
import { startSlowLink } from '../../support/slow-link.ts';
import { type Finished, git, newWorkTree, tryGit } from '../../support/strata.ts';

const KIB = 1024;
const SECONDS = PUSH_PACE_SPAN_MS / 1_000;

/** Opens these pushes, each slower than the one before it; returns the places of those that were cut. */
function cutOf(pushes: readonly { readonly account: string; readonly address: string }[]): readonly number[] {
  const { open } = createSlowPushes();
  const opened = pushes.map(open);
  for (const [index, push] of opened.entries()) push.slow(SLOW_PUSH_BYTES_PER_SECOND_MAX - 1 - index);
  return opened.flatMap((push, index) => (push.cutFor() === null ? [] : [index]));
}

describe('Slow pushes', () => {
  test('of an account are as many as its limit, wherever they come from', () => {
    const pushes = Array.from({ length: SLOW_PUSHES_OF_ACCOUNT_MAX + 1 }, (_, n) => ({
      account: 'ada',
      address: `192.0.2.${n}`,
    }));
    assert.deepEqual(cutOf(pushes.slice(1)), []);
    assert.deepEqual(cutOf(pushes), [SLOW_PUSHES_OF_ACCOUNT_MAX]);
  });

  test('of a network are as many as its limit, whoever sends them', () => {
    for (const address of [() => '192.0.2.1', (n: number) => `2001:db8::${n.toString(16)}`]) {
      const pushes = Array.from({ length: SLOW_PUSHES_OF_NETWORK_MAX + 1 }, (_, n) => ({
        account: `account ${n}`,
        address: address(n),
      }));
      assert.deepEqual(cutOf(pushes.slice(1)), []);
      assert.deepEqual(cutOf(pushes), [SLOW_PUSHES_OF_NETWORK_MAX]);
    }
  });

  test('of the networks of a /48 of IPv6 are as many as its limit, and those of neighbours in IPv4 are not counted together', () => {
    const pushes = Array.from({ length: SLOW_PUSHES_OF_WIDE_NETWORK_MAX + 1 }, (_, n) => ({
      account: `account ${n}`,
      address: `2001:db8:0:${n.toString(16)}::1`,
    }));
    assert.deepEqual(cutOf(pushes.slice(1)), []);
    assert.deepEqual(cutOf(pushes), [SLOW_PUSHES_OF_WIDE_NETWORK_MAX]);
    assert.deepEqual(cutOf(pushes.map(({ account }, n) => ({ account, address: `192.0.2.${n}` }))), []);
  });

  function full(): { readonly pushes: readonly SlowPush[]; readonly next: () => SlowPush } {
    const { open } = createSlowPushes();
    const next = () => open({ account: 'ada', address: '192.0.2.1' });
    const pushes = Array.from({ length: SLOW_PUSHES_OF_ACCOUNT_MAX }, next);
    for (const push of pushes) push.slow(10_000);
    return { pushes, next };
  }

  test('that are too many lose the slowest, which need not be the last', () => {
    const { pushes, next } = full();
    pushes[3]?.slow(9_999);
    const faster = next();
    faster.slow(10_001);
    assert.equal(faster.cutFor(), null);
    assert.deepEqual(
      pushes.map((push) => push.cutFor() !== null),
      pushes.map((_, index) => index === 3),
    );
    const slower = next();
    slower.slow(9_999);
    assert.deepEqual(slower.cutFor(), { of: 'account', pushesMax: SLOW_PUSHES_OF_ACCOUNT_MAX });
  });

  test('of one rate lose the last that came, and one that leaves makes room for one', () => {
    const { pushes, next } = full();
    const last = next();
    last.slow(10_000);
    assert.notEqual(last.cutFor(), null);
    pushes[0]?.leave();
    pushes[0]?.leave();
    const another = next();
    another.slow(5_000);
    assert.equal(another.cutFor(), null);
    assert.ok(pushes.every((push) => push.cutFor() === null));
  });
});

interface Scene {
  readonly fixture: ApiFixture;
  readonly git: GitFixture;
  readonly token: TestToken;
  readonly receivedBytes: () => number;
}

async function scene(context: TestContext): Promise<Scene> {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const ada = await fixture.account('ada');
  await fixture.repository(ada, 'engine');
  const { database } = createFakeObjects();
  let receivedBytes = 0;
  async function* counted(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      receivedBytes += chunk.length;
      yield chunk;
    }
  }
  const receive: typeof database.receive = (options) => database.receive({ ...options, pack: counted(options.pack) });
  const server = await startGit(fixture, { objects: { ...fixture.context.objects, receive } });
  cleanUp(context, () => server.close());
  return { fixture, git: server, token: await fixture.token(ada), receivedBytes: () => receivedBytes };
}

interface Client {
  send(bytes: number): void;
  /** What was answered by now. */
  answer(): string;
  leave(): void;
}

const BODY_BYTES = 64 * KIB * KIB;

/** Begins a push of a large pack, and sends its commands. */
function begin(slow: Scene, context: TestContext): Client {
  const list = commandList([{ ref: 'refs/heads/main', after: commit('slow').id }]);
  return open(slow, context, Buffer.concat([list, Buffer.alloc(1)]));
}

/** Begins a push with this start of its body. What it sends later means nothing. */
function open({ git: { port }, token }: Scene, context: TestContext, start: Buffer): Client {
  const socket = connect(port, '127.0.0.1');
  cleanUp(context, () => void socket.destroy());
  socket.on('error', () => undefined);
  let answer = '';
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
  const head = [
    'POST /r/ada/engine.git/git-receive-pack HTTP/1.1',
    'Host: localhost',
    `Authorization: ${basicAuthorization({ username: 'ada', token: token.secret })}`,
    'Content-Type: application/x-git-receive-pack-request',
    `Content-Length: ${BODY_BYTES}`,
  ];
  socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), start]));
  return {
    send: (bytes) => void socket.write(Buffer.alloc(bytes, '0')),
    answer: () => answer,
    leave: () => void socket.destroy(),
  };
}

/** Each client sends its bytes once a second, for this many seconds of the false clock. */
async function sendFor(
  { fixture, receivedBytes }: Scene,
  clients: readonly (readonly [client: Client, bytes: number])[],
  seconds: number,
): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    fixture.clock.advance(1_000);
    let awaitedBytes = receivedBytes();
    for (const [client, bytes] of clients) {
      client.send(bytes);
      awaitedBytes += bytes;
    }
    while (receivedBytes() < awaitedBytes && clients.every(([client]) => client.answer() === '')) await setImmediate();
    // The server asks for more before the clock goes on.
    await setImmediate();
  }
}

describe('A client that sends slowly', () => {
  test('is taken at the least rate, and told below it, in the report, while it still sends', async (context) => {
    const slow = await scene(context);
    const [least, less] = [begin(slow, context), begin(slow, context)];
    await eventually('both have begun', () => slow.receivedBytes() === 2);
    await sendFor(
      slow,
      [
        [least, PUSH_BYTES_PER_SECOND_MIN],
        [less, PUSH_BYTES_PER_SECOND_MIN - 10],
      ],
      SECONDS,
    );
    await eventually('it is told', () => less.answer() !== '');
    assert.match(less.answer(), /^HTTP\/1\.1 200 [^]*Connection: close/);
    assert.match(less.answer(), /unpack The push sent less than 4 KiB\/s over 60 s: nothing was changed/);
    assert.match(less.answer(), /ng refs\/heads\/main nothing was changed: push again over a faster connection/);
    assert.equal(least.answer(), '');
    less.leave();
    await eventually('it is counted', () => slow.git.finished.length === 1);
    assert.deepEqual(slow.git.finished[0]?.result, { outcome: 'refused', class: 'push-too-slow' });
    assert.deepEqual(slow.fixture.logged, []);
  });

  test('is told while it sends its commands too, of which those that were read are named', async (context) => {
    const slow = await scene(context);
    const commands = ['one', 'two'].map((name) => ({ ref: `refs/heads/${name}`, after: commit('slow').id }));
    // The list goes on with a packet that has no end.
    const start = Buffer.concat([commandList(commands).subarray(0, -4), Buffer.from('fff0')]);
    const client = open(slow, context, start);
    for (let second = 0; client.answer() === '' && second < 3 * SECONDS; second += 1) {
      client.send(1);
      await sleep(5);
      slow.fixture.clock.advance(1_000);
    }
    assert.match(client.answer(), /unpack The push sent less than 4 KiB\/s/);
    for (const name of ['one', 'two']) assert.ok(client.answer().includes(`ng refs/heads/${name} unpacker error`));
    client.leave();
    await eventually('it is counted', () => slow.git.finished.length === 1);
    assert.deepEqual(slow.git.finished[0]?.result, { outcome: 'refused', class: 'push-too-slow' });
    assert.equal(slow.fixture.context.bodyBudget.heldBytes(), 0);
  });

  test('is cut if it is the slowest of too many, and the others go on', async (context) => {
    const slow = await scene(context);
    const clients = Array.from({ length: SLOW_PUSHES_OF_ACCOUNT_MAX + 1 }, () => begin(slow, context));
    await eventually('all have begun', () => slow.receivedBytes() === clients.length);
    await sendFor(
      slow,
      clients.map((client, index) => [client, index === 5 ? 5 * KIB : 6 * KIB] as const),
      SECONDS + 1,
    );
    await eventually('one is told', () => clients.some((client) => client.answer() !== ''));
    const told = clients[5]?.answer() ?? '';
    assert.match(told, /slowest of more than 16 pushes of your account that send less than 16 KiB\/s/);
    assert.match(told, /ng refs\/heads\/main nothing was changed: push again later/);
    assert.equal(clients.filter((client) => client.answer() !== '').length, 1);
    clients[5]?.leave();
    await eventually('it is counted', () => slow.git.finished.length === 1);
    assert.deepEqual(slow.git.finished[0]?.result, { outcome: 'refused', class: 'too-many-slow-pushes' });
  });
});

/** Pushes a file of random bytes by the real git, over a link of this many bytes in each second of the false clock. */
async function pushOver(
  context: TestContext,
  slow: Scene,
  fileBytes: number,
  bytesPerSecond: number,
): Promise<Finished> {
  const { fixture, receivedBytes } = slow;
  const port = await startSlowLink(context, slow.git.port, bytesPerSecond, async ({ bytes, send, isAnswered }) => {
    fixture.clock.advance((bytes / bytesPerSecond) * 1_000);
    const before = receivedBytes();
    send();
    // The server asks for more before the clock goes on. A piece of a head is not counted.
    for (let turn = 0; turn < 100 && receivedBytes() === before && !isAnswered(); turn += 1) await sleep(1);
    await setImmediate();
  });
  const work = await newWorkTree(context);
  await writeFile(path.join(work, 'large'), randomBytes(fileBytes));
  await git(work, ['add', 'large']);
  await git(work, ['commit', '--quiet', '-m', 'Add a large file']);
  return tryGit(work, ['push', `http://ada:${slow.token.secret}@127.0.0.1:${port}/r/ada/engine.git`, 'main']);
}

describe('git on a slow link', () => {
  test('pushes 1.2 MB at 13 KB/s', async (context) => {
    const slow = await scene(context);
    const pushed = await pushOver(context, slow, 1_200_000, 13_000);
    assert.equal(pushed.code, 0, pushed.stderr);
    assert.deepEqual(slow.git.finished.at(-1)?.result, { outcome: 'ok' });
  });

  for (const fileBytes of [1_200_000, 12_000_000]) {
    test(`shows why a push of ${fileBytes} bytes below the least rate is cut`, async (context) => {
      const slow = await scene(context);
      const pushed = await pushOver(context, slow, fileBytes, 3_000);
      assert.notEqual(pushed.code, 0);
      assert.match(pushed.stderr, /The push sent less than 4 KiB\/s over 60 s: nothing was changed, push again over/);
      assert.deepEqual(slow.fixture.logged, []);
    });
  }
});
