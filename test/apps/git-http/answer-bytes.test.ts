/**
 * Answers whose bytes others read too, or that lie in a buffer which is used again: every reader gets all of its own.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import { sendShared } from '../../../apps/git-http/answer.ts';
import type { CommittedObjects, ObjectDatabase, ObjectReader } from '../../../core/ports/object-database.ts';
import { type ApiFixture, createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { startGit } from '../../support/git-fixture.ts';
import { basicAuthorization, DELIMITER, FLUSH, packet } from '../../support/git-wire.ts';
import { eventually } from '../../support/processes.ts';

const RESULT = 'application/x-git-upload-pack-result';
const MIB = 1024 * 1024;
const PART_BYTES = 256 * 1024;

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** A repository whose every answer is in memory. */
async function startedHeld(context: TestContext, bytes: Buffer) {
  const state = { readers: 0 };
  const heldAnswer = () => {
    state.readers += 1;
    return { bytes, release: () => void (state.readers -= 1) };
  };
  return { ...(await started(context, (database) => ({ ...database, heldAnswer }))), state };
}

/** A repository whose every answer is made in one buffer, part after part, and shows in each byte its part. */
async function startedReusing(context: TestContext, parts: number) {
  const state = { made: 0, ended: 0 };
  const uploadPack: ObjectReader['uploadPack'] = async function* ({ mayOverwrite }) {
    assert.equal(mayOverwrite, true);
    const buffer = Buffer.alloc(PART_BYTES);
    try {
      for (let part = 0; part < parts; part += 1) {
        yield buffer.fill(part);
        state.made += 1;
      }
    } finally {
      // Whoever still needs the bytes finds others.
      buffer.fill(255);
      state.ended += 1;
    }
  };
  const open = async (objects: CommittedObjects, { database }: ApiFixture['objects']) => ({
    ...(await database.open(objects)),
    uploadPack,
  });
  return {
    ...(await started(context, (database, memory) => ({ ...database, open: (of) => open(of, memory) }))),
    state,
  };
}

async function started(
  context: TestContext,
  objectsOf: (database: ObjectDatabase, memory: ApiFixture['objects']) => ObjectDatabase,
) {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const account = await fixture.account('ada');
  const repository = await fixture.repository(account, 'engine');
  const tip = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
  await fixture.push(repository, { 'refs/heads/main': tip });
  const token = await fixture.token(account);
  const git = await startGit(fixture, { objects: objectsOf(fixture.objects.database, fixture.objects) });
  cleanUp(context, () => git.close());
  const lines = ['ofs-delta\n', `want ${tip}\n`, 'done\n'].map((line) => packet(line));
  const body = Buffer.concat([packet('command=fetch\n'), DELIMITER, ...lines, FLUSH]);
  const headers = { 'content-type': 'application/x-git-upload-pack-request', 'git-protocol': 'version=2' };
  const target = '/r/ada/engine.git/git-upload-pack';
  const fetchAll = async (): Promise<{ readonly bytes: Buffer; readonly headers: Headers }> => {
    const authorization = basicAuthorization({ username: 'ada', token: token.secret });
    const init = { method: 'POST', headers: { ...headers, authorization }, body: new Uint8Array(body) };
    const answer = await fetch(git.url + target, init);
    assert.equal(answer.status, 200);
    return { bytes: Buffer.from(await answer.arrayBuffer()), headers: answer.headers };
  };
  /** Sends the request and reads no more than the first bytes of its answer. */
  const begin = async (): Promise<Socket> => {
    const socket = connect(git.port, '127.0.0.1');
    cleanUp(context, () => void socket.destroy());
    socket.on('error', () => undefined);
    const head = [
      `POST ${target} HTTP/1.1`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `Authorization: ${basicAuthorization({ username: 'ada', token: token.secret })}`,
      ...['Host: localhost', `Content-Length: ${body.length}`, 'Connection: close'],
    ];
    socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
    await once(socket, 'readable');
    return socket;
  };
  const countedBytes = () => fixture.context.transfer.unflushedBytes(account);
  return { git, fetchAll, begin, countedBytes };
}

async function restOf(socket: Socket, pauseMs: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) {
    chunks.push(Buffer.from(chunk));
    if (pauseMs > 0) await sleep(pauseMs);
  }
  const all = Buffer.concat(chunks);
  return all.subarray(all.indexOf('\r\n\r\n') + 4);
}

describe('An answer in memory', () => {
  for (const sizeBytes of [0, 1, MIB, MIB + 1, 3 * MIB]) {
    test(`of ${sizeBytes} bytes is sent whole, with its length, and is counted and released`, async (context) => {
      const bytes = randomBytes(sizeBytes);
      const { git, state, fetchAll, countedBytes } = await startedHeld(context, bytes);
      const answer = await fetchAll();
      assert.ok(answer.bytes.equals(bytes));
      assert.equal(answer.headers.get('content-length'), String(sizeBytes));
      assert.equal(answer.headers.get('content-type'), RESULT);
      assert.match(answer.headers.get('cache-control') ?? '', /no-cache/);
      await eventually('it is released', () => state.readers === 0);
      await eventually('it is counted', () => countedBytes() === sizeBytes);
      await eventually('the request has finished', () => git.finished.length === 1);
      const [finished] = git.finished;
      assert.deepEqual([finished?.operation, finished?.sentBytes], ['fetch', sizeBytes]);
      assert.equal(answer.headers.get('x-request-id'), finished?.requestId);
    });
  }

  test('is the same for two who read at a different pace, and is held until the last has it', async (context) => {
    // More than the system takes of a connection.
    const bytes = randomBytes(24 * MIB);
    const sum = sha256(bytes);
    const { state, fetchAll, begin } = await startedHeld(context, bytes);
    const slow = await begin();
    for (let reader = 0; reader < 3; reader += 1) assert.equal(sha256((await fetchAll()).bytes), sum);
    await eventually('only the slow one reads', () => state.readers === 1);
    assert.equal(sha256(await restOf(slow, 1)), sum);
    await eventually('nobody reads', () => state.readers === 0);
    assert.equal(sha256(bytes), sum, 'nobody changed it');
  });

  test('is held until the connection has taken the last of it', async (context) => {
    const state = { isSent: false };
    const server = createServer((_request, response) => {
      // More than the system takes.
      response.socket?.write(Buffer.alloc(32 * MIB));
      const answering = { response, requestId: 'one' };
      void sendShared(answering, RESULT, Buffer.from('short'), () => undefined).then(() => (state.isSent = true));
    });
    cleanUp(context, () => void server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    assert.ok(typeof address === 'object' && address !== null);
    const client = connect(address.port, '127.0.0.1');
    cleanUp(context, () => void client.destroy());
    client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(client, 'readable');
    await sleep(50);
    assert.equal(state.isSent, false);
    client.resume();
    await eventually('all of it is taken', () => state.isSent);
  });

  for (const leave of ['destroy', 'resetAndDestroy'] as const) {
    test(`is released by a reader that leaves half way, and counts no more than was sent: ${leave}`, async (context) => {
      const bytes = Buffer.alloc(64 * MIB);
      const { git, state, begin, countedBytes } = await startedHeld(context, bytes);
      const reader = await begin();
      await sleep(50);
      assert.equal(state.readers, 1);
      reader[leave]();
      await eventually('it is released', () => state.readers === 0);
      await eventually('the request has finished', () => git.finished.length === 1);
      assert.ok(countedBytes() > 0 && countedBytes() < bytes.length / 2, `${countedBytes()} bytes`);
      assert.equal(git.finished[0]?.sentBytes, countedBytes());
    });
  }
});

describe('An answer whose buffer is used again', () => {
  // More than the system takes of a connection.
  const PARTS = 96;
  const expected = Buffer.concat(Array.from({ length: PARTS }, (_, part) => Buffer.alloc(PART_BYTES, part)));

  /** The bytes of an answer that came in chunks (RFC 9112, section 7.1). */
  const unchunked = (chunked: Buffer): Buffer => {
    const parts: Buffer[] = [];
    for (let at = 0; ; ) {
      const end = chunked.indexOf('\r\n', at);
      const length = Number.parseInt(chunked.toString('latin1', at, end), 16);
      if (!(length > 0)) return Buffer.concat(parts);
      parts.push(chunked.subarray(end + 2, end + 2 + length));
      at = end + 2 + length + 2;
    }
  };

  test('is whole for readers at a different pace', async (context) => {
    const { git, state, fetchAll, begin, countedBytes } = await startedReusing(context, PARTS);
    const slow = await begin();
    for (let reader = 0; reader < 3; reader += 1) assert.ok((await fetchAll()).bytes.equals(expected));
    assert.equal(state.ended, 3);
    assert.ok(unchunked(await restOf(slow, 1)).equals(expected));
    await eventually('all requests have finished', () => git.finished.length === 4);
    assert.equal(state.ended, 4);
    assert.equal(countedBytes(), 4 * expected.length);
  });

  test('ends with a reader that leaves half way, and counts no more than was sent', async (context) => {
    const { git, state, begin, countedBytes } = await startedReusing(context, 2 * PARTS);
    const reader = await begin();
    let made = -1;
    while (made !== state.made) {
      ({ made } = state);
      await sleep(100);
    }
    assert.ok(made < PARTS, 'no part is made before the system has the one before');
    reader.destroy();
    await eventually('it has ended', () => state.ended === 1 && git.finished.length === 1);
    assert.ok(countedBytes() > 0 && countedBytes() <= (state.made + 1) * PART_BYTES, `${countedBytes()} bytes`);
  });
});
