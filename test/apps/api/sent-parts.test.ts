/** Commits over REST whose contents come in parts, on the real object database: what is taken, and what is left. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readlink } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import { createApi } from '../../../apps/api/app.ts';
import { PUSH_BODY_BYTES_MAX } from '../../../apps/api/limits.ts';
import { COMMIT_PART_BYTES_MAX, COMMIT_PARTS_MAX, JSON_PART } from '../../../apps/api/schemas/new-commits.ts';
import { PUSH_BYTES_PER_SECOND_MIN, PUSH_PACE_SPAN_MS } from '../../../apps/git-http/limits.ts';
import type { NewContents } from '../../../core/ports/new-contents.ts';
import { createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { NO_PROC } from '../../support/git-below.ts';
import { layersIn } from '../../support/layers-in.ts';
import { testDatabase } from '../../support/object-database.ts';
import { eventually } from '../../support/processes.ts';
import { skippedFor } from '../../support/skipped.ts';

const TARGET = '/v1/repos/ada/code/commits';
const SECONDS = PUSH_PACE_SPAN_MS / 1_000;

const noise = (length: number) => Buffer.from(randomBytes(length));

type Part = readonly [name: string, bytes: Uint8Array<ArrayBuffer>];

const put = (path: string, part: string) => ({ action: 'put', path, part });

/** The first part, with these changes. */
function commitPart(changes: readonly object[], more: object = {}): Part {
  const body = { branch: 'main', expected: 'any', message: 'A change', changes, ...more };
  return [JSON_PART, Buffer.from(JSON.stringify(body))];
}

function formOf(parts: readonly Part[]): FormData {
  const form = new FormData();
  for (const [name, bytes] of parts) form.append(name, new Blob([bytes]), 'file');
  return form;
}

/** The files without names that this process holds contents in. */
async function openContents(): Promise<readonly string[]> {
  const names = await readdir('/proc/self/fd');
  const targets = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
  return targets.filter((target) => target.endsWith('/contents (deleted)'));
}

/** A server with an empty repository. */
async function start(context: TestContext) {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const db = await testDatabase();
  cleanUp(context, () => db.close());
  const account = await fixture.account('ada');
  const token = await fixture.token(account, { grants: ['GIT_HTTP_WRITE'] });
  await fixture.repository(account, 'code', 'main');
  const { database } = db;
  const refusedBytes: number[] = [];
  /** What is on the disk, with more asked for. */
  const taken = { bytes: 0 };
  async function* counted(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      yield chunk;
      taken.bytes += chunk.length;
    }
  }
  const newContents: NewContents = {
    hold: (of) => {
      const held = database.newContents.hold(of);
      return { add: (bytes) => held.add(counted(bytes)), remove: () => held.remove() };
    },
  };
  const api = createApi({
    ...fixture.context,
    layers: layersIn(db.layers),
    objects: database,
    newObjects: database.newObjects,
    newContents,
    transfer: {
      ...fixture.context.transfer,
      addRefused: ({ receivedBytes }) => void refusedBytes.push(receivedBytes),
    },
  });
  cleanUp(context, () => api.close());
  const url = await api.listen({ port: 0, host: '127.0.0.1' });
  const authorization = `Bearer ${token.secret}`;
  const post = (body: BodyInit, headers: Readonly<Record<string, string>> = {}, target = TARGET) =>
    fetch(url + target, { method: 'POST', headers: { authorization, ...headers }, body });
  const send = (parts: readonly Part[], headers: Readonly<Record<string, string>> = {}) => post(formOf(parts), headers);
  const written = async (parts: readonly Part[]): Promise<void> => {
    const answer = await send(parts);
    assert.equal(answer.status, 201, await answer.text());
  };
  const refused = async (parts: readonly Part[], status: number): Promise<unknown> => {
    const answer = await send(parts);
    const text = await answer.text();
    assert.equal(answer.status, status, text);
    return (JSON.parse(text) as { readonly detail: unknown }).detail;
  };
  const { bodyBudget } = fixture.context;
  return { fixture, account, url, authorization, taken, refusedBytes, bodyBudget, post, send, written, refused };
}

describe('A commit in parts', () => {
  test('has the contents of its parts, in whichever order they are sent', async (context) => {
    const { written, refusedBytes } = await start(context);
    const large = noise(3_000_000);
    await written([
      commitPart([put('a', 'one'), { action: 'put', path: 'text', content: 'text' }, put('b/ä', 'two ä')]),
      ['two ä', large],
      ['one', Buffer.alloc(0)],
    ]);
    await written([commitPart([put('c', 'c')]), ['c', large]]);
    assert.deepEqual(refusedBytes, []);
  });

  test('is a repeat only with the same contents, whose bytes count as those of a refused push', async (context) => {
    const { send, refusedBytes } = await start(context);
    const commit = commitPart([put('a', 'a'), put('b', 'b')]);
    const [a, b] = ['a', 'b'].map((name): Part => [name, noise(1_000)]);
    assert.ok(a !== undefined && b !== undefined);
    const keyed = async (parts: readonly Part[]) => {
      const answer = await send(parts, { 'idempotency-key': 'key' });
      await answer.arrayBuffer();
      return [answer.status, answer.headers.get('idempotent-replayed')];
    };
    assert.deepEqual(await keyed([commit, a, b]), [201, null]);
    assert.deepEqual(await keyed([commit, b, a]), [201, 'true']);
    assert.deepEqual(await keyed([commit, a, ['b', noise(1_000)]]), [422, null]);
    assert.equal(refusedBytes.length, 2);
    assert.ok(refusedBytes.every((bytes) => bytes > 2_000));
  });

  test('is refused where its parts are not those that its changes name, each once', async (context) => {
    const { refused, bodyBudget } = await start(context);
    const a: Part = ['a', Buffer.from('a')];
    for (const [parts, loc] of [
      [
        [commitPart([put('x', 'a')]), ['other', Buffer.from('')], a],
        ['body', 'other'],
      ],
      [
        [commitPart([put('x', 'a')]), a, a],
        ['body', 'a'],
      ],
      [
        [commitPart([]), a],
        ['body', 'a'],
      ],
      [
        [commitPart([put('w', 'a'), put('x', 'b')]), a],
        ['body', 'changes', 1, 'part'],
      ],
      [
        [commitPart([put('w', 'a'), put('x', 'a')]), a],
        ['body', 'changes', 1, 'part'],
      ],
      [
        [commitPart([{ ...put('x', 'a'), content: 'text' }]), a],
        ['body', 'changes', 0, 'content'],
      ],
      [
        [commitPart([put('x', 'a')], { message: '' }), a],
        ['body', 'message'],
      ],
      [
        [commitPart([{ ...put('x', 'a'), other: 1 }]), a],
        ['body', 'changes', 0, 'other'],
      ],
      [
        [commitPart([], { changes: 1 }), a],
        ['body', 'changes'],
      ],
    ] as const satisfies readonly (readonly [readonly Part[], readonly unknown[]])[]) {
      const [fault] = (await refused(parts, 422)) as readonly { readonly loc: unknown }[];
      assert.deepEqual(fault?.loc, loc);
    }
    await eventually('nothing is held', () => bodyBudget.heldBytes() === 0);
  });

  test('is refused where its body is not of that form, and taken by no other route', async (context) => {
    const { post, refused } = await start(context);
    const commit = commitPart([put('x', 'a')]);
    const a: Part = ['a', Buffer.from('a')];
    assert.match(String(await refused([a, commit], 400)), /first part is the JSON, and is named commit/);
    assert.match(String(await refused([[JSON_PART, Buffer.from('{')], a], 400)), /not valid JSON/);
    const type = 'multipart/form-data; boundary=x';
    const status = async (...of: Parameters<typeof post>) => (await post(...of)).status;
    const head = '--x\r\nContent-Disposition: form-data; name="commit"\r\n\r\n';
    assert.equal(await status(`${head}{}`, { 'content-type': type }), 400);
    assert.equal(await status('text', { 'content-type': 'multipart/form-data' }), 400);
    assert.equal(await status(`${head}{}\r\n--x--`, { 'content-type': type, 'content-encoding': 'gzip' }), 400);
    assert.equal(await status(formOf([commit, a]), {}, '/v1/repos/ada/code/refs'), 400);
    const json = await post(Buffer.from(commit[1]), { 'content-type': 'application/json' });
    assert.equal(json.status, 422);
    const { detail } = (await json.json()) as { readonly detail: readonly { readonly loc: unknown }[] };
    assert.deepEqual(detail[0]?.loc, ['body', 'changes', 0, 'part']);
  });

  test(
    'that its client cuts anywhere leaves nothing on the disk or in memory, and is no fault of the service',
    skippedFor(NO_PROC),
    async (context) => {
      const { url, authorization, fixture, bodyBudget, written, taken } = await start(context);
      const encoded = new Response(formOf([commitPart([put('x', 'a')]), ['a', noise(500_000)]]));
      const body = Buffer.from(await encoded.arrayBuffer());
      const { port } = new URL(url);
      for (const sent of [10, 150, 400, 100_000, body.length - 20]) {
        taken.bytes = 0;
        const socket = connect(Number(port), '127.0.0.1');
        socket.on('error', () => undefined);
        const head = [
          `POST ${TARGET} HTTP/1.1`,
          'Host: localhost',
          `Authorization: ${authorization}`,
          `Content-Type: ${encoded.headers.get('content-type')}`,
          `Content-Length: ${body.length}`,
        ];
        socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body.subarray(0, sent)]));
        await eventually('it is read', () => bodyBudget.heldBytes() > 0 || sent < 200);
        if (sent >= 100_000) {
          await eventually('it is on the disk', async () => taken.bytes > 0 && (await openContents()).length === 2);
        }
        socket.destroy();
        await eventually('nothing is left', async () => {
          return bodyBudget.heldBytes() === 0 && (await openContents()).length === 0;
        });
      }
      assert.deepEqual(fixture.logged, []);
      await written([commitPart([put('x', 'a')]), ['a', Buffer.from('a')]]);
      assert.deepEqual(await openContents(), []);
    },
  );

  test('is read on after a refusal, so that its client reads why, and counts as a refused push', async (context) => {
    const { url, authorization, refusedBytes } = await start(context);
    const parts: Part[] = [commitPart([put('x', 'a')]), ['other', noise(5_000_000)]];
    const answers = [];
    for (let n = 0; n < 2; n += 1) {
      const answer = await fetch(url + TARGET, { method: 'POST', headers: { authorization }, body: formOf(parts) });
      answers.push([answer.status, answer.headers.get('connection')]);
      await answer.arrayBuffer();
    }
    assert.deepEqual(answers, [
      [422, 'keep-alive'],
      [422, 'keep-alive'],
    ]);
    assert.ok(refusedBytes.length === 2 && refusedBytes.every((bytes) => bytes > 5_000_000), refusedBytes.join());
  });

  test('is decided for no token that was revoked while it arrived, also a dry run', async (context) => {
    const { url, fixture, account, taken } = await start(context);
    for (const more of [{}, { dry_run: true }]) {
      taken.bytes = 0;
      const token = await fixture.token(account, { grants: ['GIT_HTTP_WRITE'] });
      const encoded = new Response(formOf([commitPart([put('x', 'a')], more), ['a', noise(500_000)]]));
      const body = Buffer.from(await encoded.arrayBuffer());
      const sending = request(url + TARGET, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token.secret}`,
          'content-type': encoded.headers.get('content-type') ?? '',
        },
      });
      const answered = new Promise<IncomingMessage>((resolve, reject) => {
        sending.on('response', resolve).on('error', reject);
      });
      sending.write(body.subarray(0, 200_000));
      await eventually('it has begun', () => taken.bytes > 0);
      const revoked = await fixture.request('DELETE', `/v1/access-tokens/${token.id}`, token);
      assert.equal(revoked.statusCode, 204);
      sending.end(body.subarray(200_000));
      const answer = await answered;
      answer.resume();
      assert.equal(answer.statusCode, 401);
    }
  });

  test('whose client sends more slowly than a push may is cut, and told', async (context) => {
    const { url, authorization, fixture, taken } = await start(context);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    cleanUp(context, () => void socket.destroy());
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1'))).on('error', () => undefined);
    const name = (of: string) => `--x\r\nContent-Disposition: form-data; name="${of}"\r\n\r\n`;
    const [, json] = commitPart([put('x', 'a')]);
    const begun = `${name(JSON_PART)}${Buffer.from(json).toString()}\r\n${name('a')}${'0'.repeat(100)}`;
    const head = [
      `POST ${TARGET} HTTP/1.1`,
      'Host: localhost',
      `Authorization: ${authorization}`,
      'Content-Type: multipart/form-data; boundary=x',
      'Content-Length: 10000000',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n${begun}`);
    await eventually('it has begun', () => taken.bytes > 0);
    const slow = PUSH_BYTES_PER_SECOND_MIN - 50;
    for (let second = 0; second < SECONDS; second += 1) {
      fixture.clock.advance(1_000);
      const awaitedBytes = taken.bytes + slow;
      socket.write('0'.repeat(slow));
      while (taken.bytes < awaitedBytes && answer === '') await setImmediate();
      // The server asks for more before the clock goes on.
      await setImmediate();
    }
    await eventually('it is told', () => answer !== '');
    assert.match(answer, /^HTTP\/1\.1 408 [^]*connection: close/i);
    assert.match(answer, /less than 4 KiB\/s over 60 s/);
  });

  test('has parts up to their number and size, and JSON up to its own, and no more', async (context) => {
    const { written, refused } = await start(context);
    const names = Array.from({ length: COMMIT_PARTS_MAX }, (_, n) => `part ${n}`);
    const full = new Uint8Array(COMMIT_PART_BYTES_MAX);
    const parts = names.map((name, n): Part => [name, n === 7 ? full : Buffer.from(name)]);
    const changes = names.map((name) => put(name, name));
    await written([commitPart(changes), ...parts]);
    const [fault] = (await refused(
      [commitPart([...changes, put('more', 'more')]), ...parts, ['more', Buffer.from('')]],
      422,
    )) as readonly { readonly loc: unknown }[];
    assert.deepEqual(fault?.loc, ['body', 'changes', COMMIT_PARTS_MAX, 'part']);
    const larger = new Uint8Array(COMMIT_PART_BYTES_MAX + 1);
    assert.match(String(await refused([commitPart([put('x', 'a')]), ['a', larger]], 413)), /part a is larger than/);
    const [, json] = commitPart([put('x', 'a')]);
    const padded = (length: number): Part => [
      JSON_PART,
      Buffer.concat([json, Buffer.alloc(length - json.length, ' ')]),
    ];
    await written([padded(PUSH_BODY_BYTES_MAX), ['a', Buffer.from('a')]]);
    await refused([padded(PUSH_BODY_BYTES_MAX + 1), ['a', Buffer.from('a')]], 413);
  });
});
