/**
 * What honest clients do: they push, fetch and clone with the real git, read and write over REST, read the website, log
 * devices in, get webhooks, and delete what they made.
 *
 * Invariants: each act throws when anything is not as its client expects; nothing is tried again.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dice } from '../support/seeded.ts';
import { commitFile, createRepository, git } from '../support/strata.ts';
import { gitAs, type Person, repositoryPage, repositoryPath, type Scene } from './scene.ts';

export type Act = (scene: Scene, person: Person, dice: Dice) => Promise<void>;

const FILE_BYTES_MAX = 48 * 1024;
/** The interval that a device is told to poll at. */
const POLL_MS = 2_000;

/** By name, with how often each is done. */
export const HONEST_ACTS: ReadonlyMap<string, { readonly weight: number; readonly act: Act }> = new Map([
  ['push', { weight: 6, act: push }],
  ['fetch', { weight: 4, act: fetchRefs }],
  ['clone', { weight: 4, act: clone }],
  ['rest reads', { weight: 8, act: readRest }],
  ['rest writes', { weight: 3, act: writeRest }],
  ['pages', { weight: 6, act: readPages }],
  ['device login', { weight: 1, act: logDeviceIn }],
  ['repository made and purged', { weight: 3, act: makeAndPurge }],
]);

/** Sends a request of the person; throws if the answer has another status. */
async function call(
  { server }: Scene,
  { account, address }: Person,
  request: { readonly method?: string; readonly target: string; readonly body?: unknown; readonly token?: string },
  status: number,
): Promise<unknown> {
  const { method = 'GET', target, body, token = account.token } = request;
  const answer = await fetch(server.url + target, {
    method,
    headers: {
      ...(token === '' ? {} : { Authorization: `Bearer ${token}` }),
      'X-Forwarded-For': address,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  assert.equal(answer.status, status, `${method} ${target}: ${text.slice(0, 300)}`);
  return answer.headers.get('content-type')?.includes('json') === true ? JSON.parse(text) : text;
}

async function push(_scene: Scene, person: Person, dice: Dice): Promise<void> {
  const content = randomBytes(1 + dice.below(FILE_BYTES_MAX)).toString('base64');
  await commitFile(person.work, `file-${dice.below(8)}`, content);
  const branch = dice.chance(0.2) ? `topic-${dice.below(3)}` : 'main';
  await gitAs(person, person.work, ['push', '--quiet', '--force', person.url, `HEAD:${branch}`]);
}

async function fetchRefs(_scene: Scene, person: Person): Promise<void> {
  const listed = await gitAs(person, person.work, ['ls-remote', person.url]);
  assert.match(listed, /refs\/heads\/main/);
  await gitAs(person, person.work, ['fetch', '--quiet', person.url, '+refs/heads/*:refs/remotes/origin/*']);
}

async function clone(_scene: Scene, person: Person, dice: Dice): Promise<void> {
  const folder = path.join(person.folder, `clone-${(person.made += 1)}`);
  const depth = dice.chance(0.3) ? ['--depth=1'] : [];
  try {
    await gitAs(person, person.folder, ['clone', '--quiet', ...depth, person.url, folder]);
    await git(folder, ['fsck', '--no-dangling']);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function readRest(scene: Scene, person: Person): Promise<void> {
  const repository = repositoryPath(person);
  for (const target of [
    '/v1/repositories',
    repository,
    `${repository}/branches`,
    `${repository}/commits?limit=20`,
    `${repository}/contents/README.md`,
    `${repository}/activity`,
    '/v1/account/usage',
    '/v1/account/events?limit=20',
  ]) {
    await call(scene, person, { target }, 200);
  }
}

async function writeRest(scene: Scene, person: Person): Promise<void> {
  const description = `Changed ${(person.made += 1)} times`;
  const target = repositoryPath(person);
  await call(scene, person, { method: 'PATCH', target, body: { description } }, 200);
  const read = (await call(scene, person, { target }, 200)) as { readonly description: string };
  assert.equal(read.description, description, 'a read after a write sees the write');
}

async function readPages(_scene: Scene, person: Person): Promise<void> {
  const repository = repositoryPage(person);
  for (const page of ['/', repository, `${repository}/commits`, `${repository}/branches`, '/usage', '/history']) {
    const shown = await person.browser.follow(await person.browser.get(page, { 'x-forwarded-for': person.address }));
    assert.equal(shown.status, 200, `${page}: ${shown.status}`);
  }
}

interface DeviceSession {
  readonly id: string;
  readonly user_code: string;
  readonly secret_token: string;
  readonly verification_url: string;
}

async function logDeviceIn(scene: Scene, person: Person): Promise<void> {
  const begun = { method: 'POST', target: '/v1/auth/sessions', body: { hostname: 'soak' }, token: '' };
  const session = (await call(scene, person, begun, 201)) as DeviceSession;
  const target = `/v1/auth/sessions/${session.id}/poll?secret_token=${session.secret_token}`;
  const page = new URL(session.verification_url);
  const choice = { name: 'Device', permissions: 'all', scope: 'ALL_REPO', expiry: 'never', expiry_time: '' };
  const fields = { decision: 'grant', user_code: session.user_code, ...choice };
  const granted = await person.browser.submit(page.pathname + page.search, fields);
  assert.equal(granted.status, 303, granted.html.slice(0, 300));
  await sleep(POLL_MS);
  const { token, access_token } = (await call(scene, person, { target, token: '' }, 200)) as {
    readonly token: string;
    readonly access_token: { readonly id: string };
  };
  await call(scene, person, { target: '/v1/repositories', token }, 200);
  await call(scene, person, { method: 'DELETE', target: `/v1/access-tokens/${access_token.id}` }, 204);
  await call(scene, person, { target: '/v1/repositories', token }, 401);
}

async function makeAndPurge(scene: Scene, person: Person): Promise<void> {
  const name = `made-${(person.made += 1)}`;
  const url = await createRepository(scene.server, person.account, name);
  const target = `/v1/repos/${person.account.username}/${name}`;
  const { id } = (await call(scene, person, { target }, 200)) as { readonly id: string };
  await gitAs(person, person.work, ['push', '--quiet', url, 'HEAD:main']);
  await call(scene, person, { method: 'DELETE', target }, 204);
  await call(scene, person, { method: 'POST', target: `/v1/repositories/${id}/purge` }, 202);
  await call(scene, person, { target }, 404);
}
