/** What a refused push brought counts as ingress if its pack arrived whole: the service has read it all the same. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'vitest';
import { MIB } from '../../../core/kernel/byte-units.ts';
import { REFUSED_BODY_DRAIN_BYTES_MAX } from '../../../core/kernel/limits.ts';
import type { ObjectDatabase } from '../../../core/ports/object-database.ts';
import { createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { createFakeObjects, type FakeObjects } from '../../support/fake-objects.ts';
import { type GitFixture, startGit } from '../../support/git-fixture.ts';
import { commandList } from '../../support/git-wire.ts';
import { eventually } from '../../support/processes.ts';

const MAIN = 'refs/heads/main';
const OTHER = 'refs/heads/other';
const PACK = Buffer.alloc(300_000, 'p');
const TARGET = '/r/ada/engine.git/git-receive-pack';
const TYPE = 'application/x-git-receive-pack-request';

const refuseUnread = async () => ({ refused: 'pack-broken', detail: 'broken' }) as const;

interface Pushing {
  readonly objects: FakeObjects;
  readonly git: GitFixture;
  readonly token: TestToken;
  /** The commit of `main`, which exists. */
  readonly main: string;
  /** The bytes of refused pushes that were counted. */
  readonly counted: readonly number[];
  push(commands: Parameters<typeof commandList>[0]): Promise<{ readonly text: string; readonly bytes: number }>;
}

/** `receive` stands in for that of `objects`, which reads the whole pack. */
async function pushing(context: Ending, receive?: ObjectDatabase['receive']): Promise<Pushing> {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const ada = await fixture.account('ada');
  const repository = await fixture.repository(ada, 'engine');
  const main = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
  await fixture.push(repository, { [MAIN]: main });
  const objects = createFakeObjects();
  const counted: number[] = [];
  const { transfer } = fixture.context;
  const git = await startGit(fixture, {
    objects: { ...fixture.context.objects, receive: receive ?? objects.database.receive },
    transfer: {
      ...transfer,
      addRefused: ({ account, repository: of, receivedBytes, address }) => {
        assert.deepEqual([account, of, address], [ada, repository.id, '127.0.0.1']);
        counted.push(receivedBytes);
      },
    },
  });
  cleanUp(context, () => git.close());
  const token = await fixture.token(ada);
  return {
    ...{ objects, git, token, main, counted },
    async push(commands) {
      const isDeletion = commands.every(({ after }) => after === undefined);
      const body = Buffer.concat([commandList(commands), isDeletion ? Buffer.alloc(0) : PACK]);
      const { text } = await git.request('POST', TARGET, token, { body, headers: { 'content-type': TYPE } });
      return { text, bytes: body.length };
    },
  };
}

describe('The bytes of a push', () => {
  test('count if its pack is refused', async (context) => {
    const { objects, push, main, counted } = await pushing(context);
    objects.refusal = { refused: 'pack-broken', detail: 'broken' };
    const read = await push([{ ref: OTHER, after: main }]);
    assert.match(read.text, /broken/);
    assert.deepEqual(counted, [read.bytes]);
  });

  test('count if its pack is refused before it is read, since the rest is read all the same', async (context) => {
    const { push, main, counted } = await pushing(context, refuseUnread);
    const refused = await push([{ ref: OTHER, after: main }]);
    assert.match(refused.text, /broken/);
    assert.deepEqual(counted, [refused.bytes]);
  });

  test('count if all its refs are refused, and not if one of them moved, since the event of the push has them', async (context) => {
    const { push, main, counted } = await pushing(context);
    const refused = await push([{ ref: MAIN, after: main }]);
    assert.match(refused.text, /ng refs\/heads\/main/);
    assert.deepEqual(counted, [refused.bytes]);
    const partial = await push([
      { ref: MAIN, after: main },
      { ref: OTHER, after: main },
    ]);
    assert.match(partial.text, /ok refs\/heads\/other/);
    assert.deepEqual(counted, [refused.bytes]);
  });

  test('do not count if the service failed, nor if there was no pack', async (context) => {
    const { objects, push, main, counted } = await pushing(context);
    objects.refusal = { refused: 'disk-full', detail: 'No space left on device' };
    await push([{ ref: OTHER, after: main }]);
    await push([{ ref: 'refs/heads/gone', before: main }]);
    assert.deepEqual(counted, []);
  });

  test('do not count if the connection broke before the pack was whole', async (context) => {
    let isRefused = false;
    const { git, token, main, counted } = await pushing(context, async () => {
      isRefused = true;
      return refuseUnread();
    });
    const commands = commandList([{ ref: OTHER, after: main }]);
    const client = await beginPush({ git, token }, commands.length + PACK.length);
    client.write(Buffer.concat([commands, PACK.subarray(0, -1)]));
    await eventually('the pack is refused', () => isRefused);
    client.destroy();
    await eventually('the push has ended', () => git.finished.length > 0);
    assert.deepEqual(counted, []);
  });

  test('are read to the limit after its refusal; with one more, the connection ends with the answer', async (context) => {
    for (const [more, keeps] of [
      [0, true],
      [1, false],
    ] as const) {
      let isRefused = false;
      const { git, token, main } = await pushing(context, async () => {
        isRefused = true;
        return refuseUnread();
      });
      const commands = commandList([{ ref: OTHER, after: main }]);
      const client = await beginPush({ git, token }, commands.length + REFUSED_BODY_DRAIN_BYTES_MAX + more);
      let answer = '';
      client.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
      client.write(commands);
      await eventually('the pack is refused', () => isRefused);
      const part = Buffer.alloc(MIB);
      for (let sent = 0; sent < REFUSED_BODY_DRAIN_BYTES_MAX; sent += MIB) client.write(part);
      client.write(part.subarray(0, more));
      await eventually('the push is answered', () => /broken/.test(answer));
      assert.equal(/^connection: close/im.test(answer), !keeps, `${more} more`);
      client.destroy();
    }
  });
});

/** Sends the head of a push whose body has this length. */
async function beginPush({ git, token }: Pick<Pushing, 'git' | 'token'>, lengthBytes: number): Promise<Socket> {
  const client = connect(git.port, '127.0.0.1');
  client.on('error', () => undefined);
  await once(client, 'connect');
  const authorization = `Basic ${Buffer.from(`git:${token.secret}`).toString('base64')}`;
  const head = [`POST ${TARGET} HTTP/1.1`, 'Host: localhost', `Authorization: ${authorization}`];
  client.write([...head, `Content-Type: ${TYPE}`, `Content-Length: ${lengthBytes}`, '', ''].join('\r\n'));
  return client;
}
