/**
 * The attack: pushes of 100,000 commands, 286 KB each as gzip, sent all but the end. Each held 20 MiB of memory,
 * outside every bound, and a byte now and then kept it for ten minutes: some hundred connections ended the process.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, type TestContext, test, vi } from 'vitest';
import { BODY_BOUNDS } from '../../../apps/front-door/body-budget.ts';
import { type Body, BodyError } from '../../../apps/git-http/body.ts';
import { PUSH_BYTES_PER_SECOND_MIN } from '../../../apps/git-http/limits.ts';
import { COMMAND_LIST_SPAN_MS, limitListSpan } from '../../../apps/git-http/list-span.ts';
import { COMMAND_LIST_HELD_FACTOR, readCommandList } from '../../../core/git/wire/command-list.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { garbageCollection } from '../../support/garbage-collection.ts';
import { type GitFixture, startGit } from '../../support/git-fixture.ts';
import { basicAuthorization, commandList, ZERO } from '../../support/git-wire.ts';
import { eventually } from '../../support/processes.ts';

const MIB = 1024 * 1024;

interface Scene {
  readonly fixture: ApiFixture;
  readonly git: GitFixture;
  readonly token: TestToken;
  readonly other: TestToken;
}

async function scene(context: TestContext, rateFactor = 1): Promise<Scene> {
  const fixture = await createApiFixture({ rateFactor });
  cleanUp(context, () => fixture.close());
  const [mallory, ada] = [await fixture.account('mallory'), await fixture.account('ada')];
  await fixture.repository(mallory, 'engine');
  await fixture.repository(ada, 'engine');
  const [token, other] = [await fixture.token(mallory), await fixture.token(ada)];
  const git = await startGit(fixture);
  cleanUp(context, () => git.close());
  return { fixture, git, token, other };
}

/** Deletions of refs that are not there, which need no pack. */
function deletions(count: number): Buffer {
  return commandList(Array.from({ length: count }, (_, n) => ({ ref: `refs/heads/branch-${n}`, before: ZERO })));
}

/** Sends this of the body; the rest never comes. */
function push({ git, token }: Scene, body: Buffer, lengthBytes: number, context: TestContext): Socket {
  const socket = connect(git.port, '127.0.0.1');
  cleanUp(context, () => void socket.destroy());
  socket.on('error', () => undefined);
  const head = [
    'POST /r/mallory/engine.git/git-receive-pack HTTP/1.1',
    'Host: localhost',
    `Authorization: ${basicAuthorization({ username: 'mallory', token: token.secret })}`,
    'Content-Type: application/x-git-receive-pack-request',
    'Content-Encoding: gzip',
    `Content-Length: ${lengthBytes}`,
  ];
  socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
  return socket;
}

async function pushOf({ git }: Scene, username: string, token: TestToken, body: Buffer): Promise<string> {
  const headers = { 'content-type': 'application/x-git-receive-pack-request' };
  const { text } = await git.request('POST', `/r/${username}/engine.git/git-receive-pack`, token, { body, headers });
  return text;
}

describe('Somebody who holds command lists open', () => {
  test('gets no more memory than there is for one account, and others push in between', async (context) => {
    const attack = await scene(context);
    const { bodyBudget } = attack.fixture.context;
    const collect = garbageCollection();
    const list = deletions(10_000);
    // All but the end of the list, whole as gzip.
    const body = gzipSync(list.subarray(0, -4));
    collect();
    const before = process.memoryUsage().heapUsed;
    const sockets = Array.from({ length: 100 }, () => push(attack, body, body.length + 20, context));
    const most = BODY_BOUNDS.accounts.account.bytesMax;
    // Lists that arrive side by side fill the part before any is whole, and those that are refused make room again.
    await eventually('the part of the account is full', async () => {
      const answer = await pushOf(attack, 'mallory', attack.token, list);
      assert.ok(bodyBudget.heldBytes() <= most);
      if (answer.includes('unpack Too many bytes of your requests')) return true;
      sockets.push(push(attack, body, body.length + 20, context));
      return false;
    });
    collect();
    const held = process.memoryUsage().heapUsed - before;
    assert.ok(held < bodyBudget.heldBytes() + 24 * MIB, `${held} bytes of memory for ${bodyBudget.heldBytes()}`);
    assert.match(await pushOf(attack, 'ada', attack.other, deletions(1_000)), /ok refs\/heads\/branch-999/);
    for (const socket of sockets) socket.destroy();
    await eventually('nothing is held', () => bodyBudget.heldBytes() === 0);
    assert.match(await pushOf(attack, 'mallory', attack.token, deletions(1_000)), /ok refs\/heads\/branch-999/);
    assert.equal(bodyBudget.heldBytes(), 0);
  });

  test('holds the report on a list that is refused, and no more, while the rest of the body does not come', async (context) => {
    // 2,500 changes of refs an hour.
    const attack = await scene(context, 0.01);
    const { bodyBudget } = attack.fixture.context;
    const list = deletions(20_000);
    const body = gzipSync(list);
    const collect = garbageCollection();
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let n = 0; n < 8; n += 1) push(attack, body.subarray(0, -1), body.length, context);
    await eventually('the lists arrive', () => bodyBudget.heldBytes() > list.length);
    await eventually('their reports are held', () => {
      const heldBytes = bodyBudget.heldBytes();
      return heldBytes > 8 * 600_000 && heldBytes < 8 * 1_000_000;
    });
    collect();
    const held = process.memoryUsage().heapUsed - before;
    assert.ok(held < 16 * MIB, `${held} bytes of memory`);
  });
});

describe('The memory for a command list', () => {
  test('is that for its own bytes as they arrive, not for the pack behind it', async () => {
    const list = deletions(1_000);
    const whole = new Uint8Array(Buffer.concat([list, Buffer.alloc(100_000)]));
    for (const size of [7, 1_000, whole.length]) {
      async function* chunks(): AsyncGenerator<Uint8Array> {
        for (let at = 0; at < whole.length; at += size) yield whole.slice(at, at + size);
      }
      let held = 0;
      const read = await readCommandList(chunks(), (bytes) => {
        held += bytes;
        return null;
      });
      assert.ok('commands' in read.list && read.list.commands.length === 1_000);
      assert.equal(held, list.length * COMMAND_LIST_HELD_FACTOR);
    }
  });
});

describe('A command list that does not end', () => {
  async function* drops(everyMs: number): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      await sleep(everyMs);
      yield Buffer.from('0');
    }
  }

  test('is waited for no longer than its span, however often a byte of it comes', async () => {
    const body: Pick<Body, 'bytes' | 'receivedBytes'> = { bytes: drops(20), receivedBytes: () => 0 };
    const span = limitListSpan(body, () => performance.now(), 200);
    await assert.rejects(
      async () => {
        for await (const _ of span.bytes);
      },
      { code: 'body-too-slow' },
    );
    span.end();
  });

  test('that does not come is waited for to the last moment of its span', async (context) => {
    vi.useFakeTimers();
    context.onTestFinished(() => void vi.useRealTimers());
    const body = { bytes: silence(), receivedBytes: () => 0 };
    const span = limitListSpan(body, () => performance.now());
    const faults: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const _ of span.bytes);
    };
    void read().catch((error: unknown) => faults.push(error));
    await vi.advanceTimersByTimeAsync(COMMAND_LIST_SPAN_MS - 1);
    assert.equal(faults.length, 0);
    await vi.advanceTimersByTimeAsync(1);
    const [fault] = faults;
    assert.ok(fault instanceof BodyError && fault.code === 'body-too-slow');
  });

  test('has more time while it comes at the least speed of a push, and none after it has ended', async () => {
    let received = 0;
    const body = { bytes: drops(20), receivedBytes: () => (received += PUSH_BYTES_PER_SECOND_MIN / 40) };
    const span = limitListSpan(body, () => performance.now(), 20);
    let count = 0;
    for await (const _ of span.bytes) {
      count += 1;
      if (count === 3) break;
    }
    span.end();
    const bytes = limitListSpan({ bytes: drops(100), receivedBytes: () => 0 }, () => performance.now(), 50);
    bytes.end();
    for await (const _ of bytes.bytes) break;
  });

  test('is answered 408, and its connection ends', async (context) => {
    const attack = await scene(context);
    const git = await startGit(attack.fixture, {
      clock: { ...attack.fixture.context.clock, monotonicMs: hurrying() },
    });
    cleanUp(context, () => git.close());
    const body = gzipSync(deletions(100).subarray(0, -4));
    const socket = push({ ...attack, git }, body, body.length + 20, context);
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
    await once(socket, 'close');
    assert.match(answer, /^HTTP\/1\.1 408 [^]*Connection: close[^]*The body took too long/);
    assert.equal(attack.fixture.context.bodyBudget.heldBytes(), 0);
  });
});

async function* silence(): AsyncGenerator<Uint8Array> {
  await new Promise(() => undefined);
  yield new Uint8Array();
}

/** A clock on which the span of a list is almost over at the second look. */
function hurrying(): () => number {
  let looks = 0;
  return () => (COMMAND_LIST_SPAN_MS - 100) * looks++;
}
