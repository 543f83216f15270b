/** What is recorded of a push: git gets a refusal with status 200, so the status does not tell it. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { FinishedRequest, GitHttpContext } from '../../../apps/git-http/context.ts';
import { resultOfError, resultOfPush } from '../../../apps/git-http/push-result.ts';
import { parseRefName } from '../../../core/git/ref-name.ts';
import { EventStoreError } from '../../../core/ports/event-store.ts';
import { LayerStoreError } from '../../../core/ports/layer-store.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { newAccount } from '../../support/accounts.ts';
import { type ApiFixture, createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { startGit } from '../../support/git-fixture.ts';
import { commandList } from '../../support/git-wire.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { startNode } from '../../support/node.ts';
import { newBucket, newRepositoryIn } from '../../support/stored-buckets.ts';

type WireCommand = Parameters<typeof commandList>[0][number];
const MAIN = 'refs/heads/main';

/** Sends a push to a repository whose branch `main` is at `main`; returns its status and what is recorded of it. */
async function pushed(
  context: Ending,
  commands: (main: string) => readonly WireCommand[],
  parts: (fixture: ApiFixture) => Partial<GitHttpContext> = () => ({}),
): Promise<Pick<FinishedRequest, 'status' | 'result'>> {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const ada = await fixture.account('ada');
  const repository = await fixture.repository(ada, 'engine');
  const commit = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
  await fixture.push(repository, { [MAIN]: commit });
  const server = await startGit(fixture, parts(fixture));
  cleanUp(context, () => server.close());
  const body = commandList(commands(commit));
  const headers = { 'content-type': 'application/x-git-receive-pack-request' };
  const token = await fixture.token(ada);
  await server.request('POST', '/r/ada/engine.git/git-receive-pack', token, { body, headers });
  const [finished] = server.finished;
  assert.equal(finished?.operation, 'push');
  return { status: finished.status, result: finished.result };
}

const deletion = (before: string): readonly WireCommand[] => [{ ref: MAIN, before }];
const creation = (after: string): readonly WireCommand[] => [{ ref: 'refs/heads/other', after }];

describe('A push that is', () => {
  test('carried out is ok', async (context) => {
    assert.deepEqual(await pushed(context, deletion), { status: 200, result: { outcome: 'ok' } });
  });

  test('refused for one of its refs is refused, for the reason of that ref', async (context) => {
    const refused = await pushed(context, (main) => [...deletion(main), { ref: 'refs/heads/gone', before: main }]);
    assert.deepEqual(refused, { status: 200, result: { outcome: 'refused', class: 'ref-missing' } });
  });

  test('refused since the disk of the node is full is an outage', async (context) => {
    const full = await pushed(context, creation, ({ context: { objects } }) => ({
      objects: { ...objects, receive: async () => ({ refused: 'disk-full', detail: 'No space left on device' }) },
    }));
    assert.deepEqual(full, { status: 200, result: { outcome: 'outage', class: 'disk-full' } });
  });

  test('refused since the log is away is an outage', async (context) => {
    const away = await pushed(context, deletion, ({ context: { events } }) => ({
      events: { ...events, append: async () => Promise.reject(new EventStoreError('log-unavailable', 'away')) },
    }));
    assert.deepEqual(away, { status: 200, result: { outcome: 'outage', class: 'log-unavailable' } });
  });

  for (const code of ['layer-store-unavailable', 'layer-store-full'] as const) {
    test(`refused with ${code} is an outage`, async (context) => {
      const away = await pushed(context, creation, ({ context: { objects } }) => ({
        objects: { ...objects, receive: async () => Promise.reject(new LayerStoreError(code, 'away')) },
      }));
      assert.deepEqual(away, { status: 200, result: { outcome: 'outage', class: code } });
    });
  }

  test('refused for its list of commands is refused, for what is wrong with the list', async (context) => {
    const refused = await pushed(context, () => [{ ref: MAIN, after: 'x' }]);
    assert.deepEqual(refused, { status: 200, result: { outcome: 'refused', class: 'command-malformed' } });
  });

  test('refused before it is read is refused, by the code of the denial', async (context) => {
    const fixture = await createApiFixture();
    cleanUp(context, () => fixture.close());
    const server = await startGit(fixture);
    cleanUp(context, () => server.close());
    await server.request('POST', '/r/ada/engine.git/git-receive-pack', null);
    const [finished] = server.finished;
    assert.equal(finished?.operation, 'push');
    assert.deepEqual(finished.result, { outcome: 'refused', class: 'credential-missing' });
  });
});

test('A request that is no push has no result', async (context) => {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const server = await startGit(fixture);
  cleanUp(context, () => server.close());
  await server.request('GET', '/r/ada/engine.git/info/refs?service=git-receive-pack', null);
  assert.equal(server.finished[0]?.result, null);
});

describe('The result of a push', () => {
  const ref = parseRefName(MAIN);
  if (typeof ref !== 'string') throw new TypeError('A name of a branch');
  const refusedCommands = [{ name: Buffer.from('main'), refused: 'ref-outside-namespaces', detail: '' }] as const;

  test('names the ref that made an atomic push fail', () => {
    const results = [
      { ref, code: 'atomic-push-refused' },
      { ref, code: 'ref-moved' },
    ] as const;
    const result = resultOfPush({ refusedCommands: [] }, { results, defaultBranch: null });
    assert.deepEqual(result, { outcome: 'refused', class: 'ref-moved' });
  });

  test('names the ref whose name is refused', () => {
    const atomic = [{ ref, code: 'atomic-push-refused' }] as const;
    for (const results of [[], [{ ref, code: null }], atomic]) {
      const result = resultOfPush({ refusedCommands }, { results, defaultBranch: null });
      assert.deepEqual(result, { outcome: 'refused', class: 'ref-outside-namespaces' });
    }
  });

  test('of a push that could not be committed in time is an outage', () => {
    const result = resultOfPush({ refusedCommands: [] }, { refused: { code: 'push-took-too-long' } });
    assert.deepEqual(result, { outcome: 'outage', class: 'push-took-too-long' });
  });

  // The attack: somebody pushes into a bucket of their own that denies access, and the operator is called at night.
  test('is no outage if the bucket of its user failed, but is if the disk of the node is full', async () => {
    const node = await startNode(createMemoryEventStore());
    const account = await newAccount(node, 'ada');
    const repository = await newRepositoryIn(node, account, await newBucket(node, account, 'own'), 'own');
    const resultOf = (error: Error) => resultOfError(error, { repository, hasLeft: false });
    const denied = resultOf(new LayerStoreError('access-denied', 'no'));
    assert.deepEqual(denied, { outcome: 'refused', class: 'access-denied' });
    const cause = new LayerStoreError('layer-store-unavailable', 'full', {
      cause: Object.assign(new Error('full'), { code: 'ENOSPC' }),
    });
    const full = resultOf(new ObjectDatabaseError('object-database-unavailable', 'full', { cause }));
    assert.deepEqual(full, { outcome: 'outage', class: 'disk-full' });
  });

  test('of an error that is in no table is an outage, unless the client has left', () => {
    const bug = new TypeError('a bug');
    const whole = { repository: null, hasLeft: false };
    assert.deepEqual(resultOfError(bug, whole), { outcome: 'outage', class: 'fault' });
    assert.deepEqual(resultOfError(bug, { ...whole, hasLeft: true }), { outcome: 'refused', class: 'client-left' });
  });
});
