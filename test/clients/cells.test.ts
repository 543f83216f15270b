/** A cell is what was judged: no client passes by its word, and none is left out in silence. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { type TestContext, test } from 'vitest';
import { git, newWorkTree } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { CLIENTS, type Client } from './catalogue.ts';
import { cellOf, missingRow } from './cells.ts';
import type { DriverAnswer } from './driver-protocol.ts';
import { goDriver, NotInstalled } from './installing.ts';
import { OPERATIONS, type Operation, type Scene } from './operations.ts';
import { countCells } from './table.ts';

const CLIENT: Client = {
  name: 'client',
  isRequiredInCi: true,
  cannot: [],
  showsStatusOf: [],
  install: () => Promise.reject(new Error('not needed')),
};

/** A scene whose server is a folder, and whose client gives this answer to everything. */
async function newScene(context: TestContext, answer: DriverAnswer): Promise<Scene> {
  const source = await newWorkTree(context);
  const folder = await tempDir(context);
  const [mirror, cloned] = [path.join(folder, 'mirror'), path.join(folder, 'cloned')];
  await git(folder, ['init', '--quiet', '--bare', mirror]);
  await git(folder, ['clone', '--quiet', source, cloned]);
  return {
    ...{ url: 'http://localhost:1/r/ada/client.git', judgeUrl: source, unknownUrl: 'http://localhost:1/r/ada/no.git' },
    ...{ username: 'ada', token: 'a-secret-token', readOnlyToken: 'another', source, mirror, cloned },
    shallow: path.join(folder, 'shallow'),
    newFolder: () => path.join(folder, 'new'),
    ask: () => Promise.resolve(answer),
  };
}

function operation(name: string): Operation {
  const found = OPERATIONS.find((candidate) => candidate.name === name);
  assert.ok(found);
  return found;
}

test('a client that says ok without having pushed or deleted anything has failed', async (context) => {
  const scene = await newScene(context, { outcome: 'ok' });
  const cell = await cellOf(CLIENT, operation('new branch'), scene);
  assert.ok(cell.is === 'failed');
  assert.match(cell.why, /the server: refs\/heads\/mine is not there instead of/);
  await git(scene.source, ['branch', 'mine']);
  assert.equal((await cellOf(CLIENT, operation('deleted branch'), scene)).is, 'failed');
});

test('a refusal passes only with the words that its user needs, or the status where no more is shown', async (context) => {
  const wrong = operation('wrong token');
  const words = 'This access token is unknown, expired or revoked: a-secret-token';
  const passed = await cellOf(CLIENT, wrong, await newScene(context, { outcome: 'refused', words }));
  assert.deepEqual(passed, { is: 'refused', words: words.replace('a-secret-token', '<token>') });

  const status = await newScene(context, { outcome: 'refused', words: 'HTTP 401' });
  assert.equal((await cellOf(CLIENT, wrong, status)).is, 'failed');
  const showsStatus: Client = { ...CLIENT, showsStatusOf: ['wrong token'] };
  assert.equal((await cellOf(showsStatus, wrong, status)).is, 'refused');
  const silent = await newScene(context, { outcome: 'refused', words: 'it did not work' });
  assert.equal((await cellOf(showsStatus, wrong, silent)).is, 'failed');
  assert.equal((await cellOf(CLIENT, wrong, await newScene(context, { outcome: 'ok' }))).is, 'failed');
});

test('what a client cannot do is so only where the catalogue says it, and only as long as it is true', async (context) => {
  const clone = operation('clone');
  const cannotClone: Client = { ...CLIENT, cannot: ['clone'] };
  const cannot = await newScene(context, { outcome: 'cannot' });
  assert.deepEqual(await cellOf(cannotClone, clone, cannot), { is: 'cannot' });
  assert.equal((await cellOf(CLIENT, clone, cannot)).is, 'failed');
  const can = await newScene(context, { outcome: 'ok' });
  assert.deepEqual(await cellOf(CLIENT, clone, can), { is: 'ok' });
  assert.deepEqual(await cellOf(cannotClone, clone, can), { is: 'failed', why: 'the client offers it now' });
  await git(can.cloned, ['update-ref', '-d', 'refs/remotes/origin/main']);
  assert.deepEqual(await cellOf(cannotClone, clone, can), { is: 'cannot' });
});

test('a client that cannot be run is named with the reason, and fails in CI if CI can install it', () => {
  const why = 'needs Python';
  assert.deepEqual(missingRow(CLIENT, why, false), { client: 'client', notRun: why });
  assert.deepEqual(missingRow({ ...CLIENT, isRequiredInCi: false }, why, true), { client: 'client', notRun: why });
  assert.deepEqual(countCells([missingRow(CLIENT, why, true)]), { passed: 0, failed: OPERATIONS.length });
  const required = CLIENTS.filter(({ isRequiredInCi }) => isRequiredInCi).map(({ name }) => name);
  for (const name of ['git', 'isomorphic-git', 'dulwich', 'pygit2', 'gitpython'])
    assert.ok(required.includes(name), name);
});

test('a language that the machine does not have is the reason why a client is not run', async () => {
  const before = process.env['PATH'];
  process.env['PATH'] = '/nonexistent';
  try {
    await assert.rejects(goDriver('go-git'), (error) => error instanceof NotInstalled && error.message === 'needs Go');
  } finally {
    process.env['PATH'] = before;
  }
});
