/**
 * Clients that stall, disconnect or send secrets: no other client waits for them, and the server keeps nothing of them.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { beforeAll, describe, test } from 'vitest';
import { cleanUp, type Ending, suiteEnding } from '../support/cleanup.ts';
import { gitBelow, NO_PROC } from '../support/git-below.ts';
import {
  basicAuthorization,
  blob,
  commandList,
  commit,
  DELIMITER,
  FLUSH,
  pack,
  packet,
  postService,
  tree,
  type WireTarget,
  wireFetch,
  wirePush,
  wireRefs,
} from '../support/git-wire.ts';
import { leftovers } from '../support/leftovers.ts';
import { eventually } from '../support/processes.ts';
import { exchange } from '../support/raw-http.ts';
import { skippedFor } from '../support/skipped.ts';
import { type Account, api, createAccount, createRepository, git, tryGit } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startWatchedServer, type WatchedServer } from '../support/watched-push.ts';

const MAIN = 'refs/heads/main';
const ROOT = commit('root');
/** More than the sockets' buffers hold. */
const LARGE = blob(randomBytes(24 * 1024 * 1024));
const FOLDER = tree([{ mode: '100644', name: 'large', id: LARGE.id }]);
const TIP = commit('large', FOLDER.id, [ROOT.id]);
const SLOW_CLIENTS = 50;

describe('A client', skippedFor(NO_PROC), () => {
  const ending = suiteEnding();
  let server: WatchedServer;
  let target: WireTarget;
  /** Processes belong to accounts: one that reads slowly holds up its own at most. */
  let bob: Account;
  let served = 0;

  beforeAll(async () => {
    server = await startWatchedServer(ending, { STRATA_LOG_LEVEL: 'trace' });
    bob = await createAccount(server.strata, 'bob');
    target = await server.newTarget();
    const pushed = await wirePush(target, [{ ref: MAIN, after: TIP.id }], [ROOT, TIP, FOLDER, LARGE]);
    assert.equal(pushed.refs.get(MAIN), 'ok', pushed.remote);
  });

  /** Sends the head of a POST and these bytes of its body; the caller sends the rest. */
  async function begin(
    context: Ending,
    service: string,
    body: Buffer,
    more: readonly string[] = [],
    { name } = target,
  ): Promise<Socket> {
    const socket = connect(server.port, '127.0.0.1');
    cleanUp(context, () => socket.destroy());
    await once(socket, 'connect');
    // The server may close the connection first; the test checks only what the server keeps.
    socket.on('error', () => undefined);
    const head = [
      `POST /r/ada/${name}.git/${service} HTTP/1.1`,
      ...['Host: localhost', `Authorization: ${basicAuthorization(server.ada)}`],
      ...[`Content-Type: application/x-${service}-request`, ...more],
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    socket.write(body);
    return socket;
  }

  /** A fetch whose answer is not cached, because the client states a have. */
  const request = (): Buffer =>
    Buffer.concat([
      ...[packet('command=fetch\n'), DELIMITER, packet(`want ${TIP.id}\n`), packet(`have ${ROOT.id}\n`)],
      ...[packet('done\n'), FLUSH],
    ]);

  async function beginClone(context: Ending): Promise<Socket> {
    const body = request();
    const socket = await begin(context, 'git-upload-pack', body, [
      'Git-Protocol: version=2',
      `Content-Length: ${body.length}`,
    ]);
    socket.pause();
    return socket;
  }

  const running = (): readonly string[] => gitBelow(server.strata.process.pid);

  const left = (): Promise<readonly string[]> => leftovers(server.strata);

  async function othersAreServed(): Promise<void> {
    const { strata } = server;
    const other = { strata, account: bob, name: `served-${(served += 1)}` };
    await createRepository(strata, bob, other.name);
    const small = commit('small');
    assert.equal((await wirePush(other, [{ ref: MAIN, after: small.id }], [small])).refs.get(MAIN), 'ok');
    assert.ok('pack' in (await wireFetch(other, small.id, 2)));
    const branches = await api(strata, bob.token, 'GET', `/v1/repos/bob/${other.name}/branches`);
    assert.equal(branches.status, 200, branches.text);
  }

  test('that disconnects while it pushes leaves no process and no quarantine', async (context) => {
    const next = commit('never whole', FOLDER.id, [TIP.id]);
    const body = Buffer.concat([commandList([{ ref: MAIN, before: TIP.id, after: next.id }]), pack([next, LARGE])]);
    await server.leavesNothing(target, [next.id], async () => {
      for (const form of [[`Content-Length: ${body.length}`], ['Transfer-Encoding: chunked']]) {
        const part = body.subarray(0, body.length - 100);
        const sent = form[0]?.startsWith('T')
          ? Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part])
          : part;
        const sockets = await Promise.all(
          Array.from({ length: 4 }, () => begin(context, 'git-receive-pack', sent, form)),
        );
        await eventually(
          'the packs are being read',
          () => running().filter((name) => name === 'index-pack').length === 4,
        );
        assert.ok((await left()).length >= 4, 'each push has a quarantine');
        for (const socket of sockets) socket.destroy();
        await eventually('no process is left', () => running().length === 0);
      }
      await eventually('no quarantine is left', async () => (await left()).length === 0);
    });
  });

  test('that disconnects after it sent its pack has pushed either everything or nothing', async (context) => {
    let committed = 0;
    for (const delayMs of [0, 1, 5, 20, 60, 200]) {
      const repository = await server.newTarget();
      const tip = commit(`unheard ${delayMs}`);
      const body = Buffer.concat([commandList([{ ref: MAIN, after: tip.id }]), pack([tip])]);
      const length = [`Content-Length: ${body.length}`];
      const socket = await begin(context, 'git-receive-pack', body, length, repository);
      setTimeout(() => socket.destroy(), delayMs);
      await once(socket, 'close');
      await eventually('it has ended', async () => running().length === 0 && (await left()).length === 0);
      const refs = await wireRefs(repository);
      if (refs.size > 0) assert.ok('pack' in (await wireFetch(repository, tip.id, 2)));
      committed += refs.size;
    }
    await context.annotate(`${committed} of 6 committed`);
  });

  test('that disconnects while it clones leaves no process', async (context) => {
    const sockets = await Promise.all(Array.from({ length: 4 }, () => beginClone(context)));
    await eventually(
      'the answers are being made',
      () => running().filter((name) => name === 'upload-pack').length === 4,
    );
    for (const socket of sockets) socket.destroy();
    await eventually('no process is left', () => running().length === 0);
    assert.ok('pack' in (await wireFetch(target, TIP.id, 2)));
  });

  test('that reads slowly delays no other client, even with 50 of them', async (context) => {
    const sockets = await Promise.all(Array.from({ length: SLOW_CLIENTS }, () => beginClone(context)));
    await othersAreServed();
    // The others' answers wait on the disk for their readers.
    assert.ok(running().length < SLOW_CLIENTS, `${running().length} processes`);
    for (const socket of sockets) socket.destroy();
    await eventually('no process is left', () => running().length === 0);
  });

  test('that sends its body byte by byte delays no other client', async (context) => {
    const list = commandList([{ ref: MAIN, before: TIP.id, after: TIP.id }]);
    const sockets: Socket[] = [];
    for (let index = 0; index < SLOW_CLIENTS; index += 1) {
      const service = index % 2 === 0 ? 'git-receive-pack' : 'git-upload-pack';
      sockets.push(await begin(context, service, list.subarray(0, 1 + index), ['Content-Length: 100000000']));
    }
    const headless = await Promise.all(
      Array.from({ length: SLOW_CLIENTS }, async () => {
        const socket = connect(server.port, '127.0.0.1');
        cleanUp(context, () => socket.destroy());
        await once(socket, 'connect');
        socket.write('POST /r/ada/x HTTP/1.1\r\nX-');
        return socket;
      }),
    );
    await othersAreServed();
    for (const socket of [...sockets, ...headless]) socket.destroy();
    assert.deepEqual(await left(), []);
  });

  test('that sends secrets finds none of them in the log, the metrics or an event', async (context) => {
    const canary = 'canary7f3Kq9';
    const secret = `strata_${canary}${'x'.repeat(34)}`;
    const { strata, port } = server;
    const folder = await tempDir(context);
    const url = new URL(strata.url);
    await tryGit(folder, ['ls-remote', `http://ada:${secret}@${url.host}/r/ada/${target.name}.git`]);
    await tryGit(folder, ['ls-remote', `http://${secret}:${secret}@${url.host}/r/${canary}/${canary}.git`]);
    const path = `/r/ada/${target.name}.git/info/refs?service=git-upload-pack`;
    const authorization = `Authorization: ${basicAuthorization(server.ada)}`;
    for (const lines of [
      [`GET ${path}&token=${secret} HTTP/1.1`, 'Host: x'],
      [`GET ${path} HTTP/1.1`, 'Host: x', `Authorization: Basic ${secret}`],
      [`GET ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${secret}`],
      [`GET ${path} HTTP/1.1`, 'Host: x', authorization, authorization],
      [`GET ${path} HTTP/1.1`, 'Host: x', authorization, `Cookie: ${secret}`, `Git-Protocol: version=2:${secret}`],
      [`GET ${path} HTTP/1.1`, `Host: ${secret}@x`, authorization, `User-Agent: ${secret}`, `Referer: ${secret}`],
      [`GET http://u:${secret}@x/r/ada/${target.name}.git HTTP/1.1`, 'Host: x', authorization],
      [`${secret} ${path} HTTP/1.1`, 'Host: x'],
      [`GET ${path} HTTP/1.1`, `Bad Header ${secret}: x`, authorization],
      [`POST /v1/repositories?token=${secret} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${server.ada.token}`],
    ]) {
      await exchange(port, `${[...lines, 'Connection: close', 'Content-Length: 0'].join('\r\n')}\r\n\r\n`);
    }
    for (const body of [`{"name": "${secret}`, `{"token": "${secret}"}`, `{"name": {"${secret}": 1}}`]) {
      const headers = { Authorization: `Bearer ${server.ada.token}`, 'Content-Type': 'application/json' };
      await fetch(`${strata.url}/v1/repositories`, { method: 'POST', headers, body });
    }
    await postService(target, 'git-upload-pack', Buffer.from(secret));
    await postService(target, 'git-upload-pack', packet(`want ${secret}\n`));
    await postService(target, 'git-receive-pack', Buffer.from(secret), { headers: { 'Content-Encoding': 'gzip' } });
    const modules = blob(`[submodule "x"]\n\tpath = -${canary}\n\turl = https://u:${secret}@example.org/x\n`);
    const folderOfModules = tree([{ mode: '100644', name: '.gitmodules', id: modules.id }]);
    const tip = commit(secret, folderOfModules.id);
    for (const ref of [MAIN, `refs/heads/${secret}`, `refs/heads/.${secret}`]) {
      await wirePush(target, [{ ref, after: tip.id }], [tip, folderOfModules, modules]);
      await wirePush(target, [{ ref, after: tip.id }], Buffer.from(`PACK${secret}${secret}`));
    }
    // The server logs this request, so everything before it has been logged too.
    await git(folder, ['ls-remote', `http://ada:${server.ada.token}@${url.host}/r/ada/${target.name}.git`]);
    assert.match(strata.log(), /"operation":"ls-refs","sentBytes":/);
    const events = JSON.stringify((await server.shared.log.since()).map((event) => ({ ...event, position: null })));
    for (const text of [strata.log(), events, await (await fetch(`${strata.url}/metrics`)).text()]) {
      assert.equal(
        text.split('\n').find((line) => line.includes(canary)),
        undefined,
      );
      assert.equal(text.includes(server.ada.token), false);
      assert.equal(text.includes(Buffer.from(`ada:${server.ada.token}`).toString('base64')), false);
      assert.equal(text.includes('correct horse battery'), false);
    }
  });
});
