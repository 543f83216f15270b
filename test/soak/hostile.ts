/**
 * What hostile clients do: requests cut at random, slow readers and senders, bad packs, bad tokens, maximal bodies, and
 * floods.
 *
 * Invariants: each act ends within some seconds, whatever the server does; what the server answers is not judged here.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { basicAuthorization, blob, commandList, commit, pack, packet, tree } from '../support/git-wire.ts';
import type { Dice } from '../support/seeded.ts';
import type { Act } from './honest.ts';
import { type Person, repositoryPath, type Scene } from './scene.ts';

const ACT_MS_MAX = 20_000;
const SLOW_MS = 4_000;
const MIB = 1024 * 1024;

export const HOSTILE_ACTS: ReadonlyMap<string, { readonly weight: number; readonly act: Act }> = new Map([
  ['cut request', { weight: 8, act: cutRequest }],
  ['slow reader', { weight: 2, act: readSlowly }],
  ['slow sender', { weight: 2, act: sendSlowly }],
  ['bad pack', { weight: 4, act: sendBadPack }],
  ['bad tokens', { weight: 2, act: sendBadTokens }],
  ['maximal body', { weight: 1, act: sendMaximalBody }],
  ['flood', { weight: 2, act: flood }],
  ['device logins', { weight: 1, act: beginDeviceLogins }],
  ['held list', { weight: 1, act: holdCommandList }],
  ['many refs', { weight: 1, act: pushManyRefs }],
]);

function head(person: Person, method: string, target: string, more: readonly string[] = []): Buffer {
  const lines = [
    `${method} ${target} HTTP/1.1`,
    'Host: localhost',
    `X-Forwarded-For: ${person.address}`,
    `Authorization: ${basicAuthorization(person.account)}`,
    ...more,
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

function posted(person: Person, target: string, type: string, body: Buffer, more: readonly string[] = []): Buffer {
  const lines = [`Content-Type: ${type}`, `Content-Length: ${body.length}`, 'Connection: close', ...more];
  return Buffer.concat([head(person, 'POST', target, lines), body]);
}

const gitPath = ({ account }: Person): string => `/r/${account.username}/work.git`;

function pushBody(dice: Dice, damage: (bytes: Buffer) => Buffer): Buffer {
  const file = blob(randomBytes(1 + dice.below(20_000)));
  const folder = tree([{ mode: '100644', name: 'file', id: file.id }]);
  const tip = commit(`Attack ${dice.below(1_000_000)}`, folder.id);
  const commands = commandList([{ ref: `refs/heads/attack-${dice.below(20)}`, after: tip.id }]);
  return Buffer.concat([commands, damage(pack([file, folder, tip]))]);
}

const pushed = (person: Person, body: Buffer): Buffer =>
  posted(person, `${gitPath(person)}/git-receive-pack`, 'application/x-git-receive-pack-request', body);

function fetched(person: Person, body: Buffer, more: readonly string[] = []): Buffer {
  const type = 'application/x-git-upload-pack-request';
  return posted(person, `${gitPath(person)}/git-upload-pack`, type, body, ['Git-Protocol: version=2', ...more]);
}

function anyRequest(person: Person, dice: Dice): Buffer {
  const json = Buffer.from(JSON.stringify({ name: `cut-${dice.below(100_000)}`, description: 'x'.repeat(500) }));
  const lsRefs = Buffer.concat([packet('command=ls-refs\n'), Buffer.from('00010000')]);
  return dice.pick([
    () =>
      pushed(
        person,
        pushBody(dice, (bytes) => bytes),
      ),
    () => fetched(person, lsRefs),
    () => posted(person, '/v1/webhooks', 'application/json', json),
    () => posted(person, '/sign-in', 'application/x-www-form-urlencoded', Buffer.from('login=a&password=b')),
    () => head(person, 'GET', `${repositoryPath(person)}/commits`),
  ])();
}

/** Connects, lets `use` act, and closes whatever happened. */
async function onSocket({ server }: Scene, use: (socket: Socket) => Promise<void>): Promise<void> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  const timer = setTimeout(() => socket.destroy(), ACT_MS_MAX);
  try {
    await once(socket, 'connect');
    await use(socket);
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/** Sends the bytes, and reads what comes until the server closes. */
async function exchange(scene: Scene, bytes: Buffer): Promise<void> {
  await onSocket(scene, async (socket) => {
    socket.resume();
    const closed = once(socket, 'close');
    socket.write(bytes);
    await closed;
  });
}

async function cutRequest(scene: Scene, person: Person, dice: Dice): Promise<void> {
  const bytes = anyRequest(person, dice);
  await onSocket(scene, async (socket) => {
    socket.write(bytes.subarray(0, dice.below(bytes.length + 1)));
    await sleep(dice.below(200));
  });
}

async function readSlowly(scene: Scene, person: Person, dice: Dice): Promise<void> {
  const target = `${repositoryPath(person)}/contents/README.md`;
  const lsRefs = Buffer.concat([packet('command=ls-refs\n'), Buffer.from('00010000')]);
  await onSocket(scene, async (socket) => {
    socket.pause();
    // Many answers, none of which is read.
    for (let n = 0; n < 20; n += 1)
      socket.write(dice.chance(0.5) ? head(person, 'GET', target) : fetched(person, lsRefs));
    await sleep(SLOW_MS);
  });
}

async function sendSlowly(scene: Scene, person: Person, dice: Dice): Promise<void> {
  const bytes = anyRequest(person, dice);
  await onSocket(scene, async (socket) => {
    for (let n = 0; n < 20 && !socket.destroyed; n += 1) {
      socket.write(bytes.subarray(n, n + 1));
      await sleep(SLOW_MS / 20);
    }
  });
}

async function sendBadPack(scene: Scene, person: Person, dice: Dice): Promise<void> {
  const body = pushBody(dice, (bytes) => {
    if (dice.chance(0.3)) return bytes.subarray(0, dice.below(bytes.length));
    if (dice.chance(0.3)) return randomBytes(bytes.length);
    const changed = Buffer.from(bytes);
    const at = dice.below(changed.length);
    changed[at] = (changed[at] ?? 0) ^ (1 << dice.below(8));
    return changed;
  });
  await exchange(scene, pushed(person, body));
}

async function sendBadTokens(scene: Scene, person: Person): Promise<void> {
  for (let n = 0; n < 5; n += 1) {
    const token = randomBytes(24).toString('base64url');
    const account = { ...person.account, token };
    const stranger = { ...person, account };
    await exchange(scene, head(stranger, 'GET', '/v1/repositories', ['Connection: close']));
    await exchange(
      scene,
      head(stranger, 'GET', `${gitPath(person)}/info/refs?service=git-upload-pack`, ['Connection: close']),
    );
  }
}

async function sendMaximalBody(scene: Scene, person: Person, dice: Dice): Promise<void> {
  if (dice.chance(0.5)) {
    const body = Buffer.from(JSON.stringify({ name: 'x'.repeat(MIB - 11) }));
    await exchange(scene, posted(person, '/v1/repositories', 'application/json', body));
    return;
  }
  const haves = Array.from({ length: 20_000 }, () => packet(`have ${randomBytes(20).toString('hex')}\n`));
  const body = gzipSync(Buffer.concat([packet('command=fetch'), Buffer.from('0001'), ...haves, Buffer.from('0000')]));
  await exchange(scene, fetched(person, body, ['Content-Encoding: gzip']));
}

async function flood(scene: Scene, person: Person): Promise<void> {
  const request = head(person, 'GET', repositoryPath(person), ['Connection: close']);
  await Promise.all(Array.from({ length: 20 }, () => exchange(scene, request)));
}

async function beginDeviceLogins(scene: Scene, person: Person): Promise<void> {
  const body = Buffer.from(JSON.stringify({ hostname: 'attack' }));
  // Their rows stay for an hour, so that many would grow in any shorter soak.
  for (let n = 0; n < 3; n += 1) await exchange(scene, posted(person, '/v1/auth/sessions', 'application/json', body));
}

/** A push of many commands that never ends. */
async function holdCommandList(scene: Scene, person: Person): Promise<void> {
  const refs = Array.from({ length: 5_000 }, (_, n) => ({ ref: `refs/heads/held-${n}`, after: 'a'.repeat(40) }));
  const body = gzipSync(commandList(refs).subarray(0, -4));
  const type = 'application/x-git-receive-pack-request';
  const request = posted(person, `${gitPath(person)}/git-receive-pack`, type, body, ['Content-Encoding: gzip']);
  await onSocket(scene, async (socket) => {
    socket.resume();
    socket.write(request.subarray(0, -1));
    await sleep(SLOW_MS);
  });
}

/** Creates branches on a commit of the push, and deletes them in the next one. */
async function pushManyRefs(scene: Scene, person: Person, dice: Dice): Promise<void> {
  const folder = tree([]);
  const tip = commit(`Many ${dice.below(1_000_000)}`, folder.id);
  const refs = Array.from({ length: 200 }, (_, n) => `refs/heads/many-${dice.below(1_000_000)}-${n}`);
  const created = commandList(refs.map((ref) => ({ ref, after: tip.id })));
  await exchange(scene, pushed(person, Buffer.concat([created, pack([folder, tip])])));
  await exchange(scene, pushed(person, commandList(refs.map((ref) => ({ ref, before: tip.id })))));
}
