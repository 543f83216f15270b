/**
 * Changes of a bucket's place that race with deletions and undeletions, on the log of PostgreSQL: one of them wins
 * whole.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { ALL_REPOSITORIES } from '../../../../core/access-token/repository-selection.ts';
import { decideBucket } from '../../../../core/account/buckets/decide.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import type { RepositoryId } from '../../../../core/kernel/ids.ts';
import { REPLACED_LAYERS_KEPT_MS_MIN } from '../../../../core/kernel/limits.ts';
import { vaultRef } from '../../../../core/kernel/vault-ref.ts';
import { execute, type Guarding } from '../../../../core/runtime/execute.ts';
import { changeBucket, deleteBucket } from '../../../../core/use-cases/buckets/buckets.ts';
import { deletionsWithinRetention } from '../../../../core/use-cases/repositories/deletions.ts';
import { letLayersGo } from '../../../../core/use-cases/repositories/expire-layers-early.ts';
import { createRepository, deleteRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { removePurged } from '../../../../core/use-cases/sweeping/remove-purged.ts';
import { undeleteRepository } from '../../../../core/use-cases/undo/undelete-repository.ts';
import { openDatabase, openStore } from '../../../adapters/postgres/open-store.ts';
import { accepted, codeOf, newAccount } from '../../../support/accounts.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { seesDeletions } from '../../../support/deletions.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { createMemoryObjects } from '../../../support/memory/object-database.ts';
import { appendPush } from '../../../support/memory/pushes.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { newBucket, newRepositoryIn } from '../../../support/stored-buckets.ts';

/** Runs the work once, at the first try of an append: after all that it rests on was read. */
function meanwhile(work: () => Promise<unknown>): Guarding {
  let isDone = false;
  return async () => {
    if (!isDone) {
      isDone = true;
      await work();
    }
    return { guards: [] };
  };
}

async function withBucket(t: TestContext) {
  const { store } = openStore(t, await openDatabase(t));
  const node = seesDeletions(await startNode(store));
  cleanUp(t, () => node.entities.close());
  const context = { ...node, outgoing: { checkEndpoint: async () => null } };
  const account = await newAccount(node, 'ada', 'PRO');
  const bucket = await newBucket(node, account, 'Home');
  const origin = (guarding?: Guarding) => ({
    ...{ account, cause: CAUSE, selection: ALL_REPOSITORIES },
    ...(guarding === undefined ? {} : { guarding }),
  });
  const create = async (name: string) => (await newRepositoryIn(node, account, bucket, name)).id;
  const remove = async (id: RepositoryId) => accepted(await deleteRepository(node, origin(), id));
  const move = (keyPrefix: string, guarding?: Guarding) =>
    changeBucket(context, origin(guarding), bucket, { settings: { keyPrefix } });
  const undelete = (id: RepositoryId, guarding?: Guarding) =>
    undeleteRepository(node, origin(guarding), { id, name: null });
  const drop = (guarding?: Guarding) => deleteBucket(node, origin(guarding), bucket);
  const lost = async () =>
    (await deletionsWithinRetention(node, account)).map(({ owned, lost: why }) => [owned.name, why]);
  return { node, account, bucket, origin, create, remove, move, undelete, drop, lost };
}

describe('A change of a bucket’s place', () => {
  test('loses against a repository that was made and deleted after its deletions were read', async (t) => {
    const { create, remove, move, lost } = await withBucket(t);
    const moved = await move(
      'new',
      meanwhile(async () => remove(await create('late'))),
    );
    assert.ok('refused' in moved && moved.refused.code === 'storage-bucket-place-fixed');
    assert.deepEqual(moved.refused.deleted?.names, ['late']);
    assert.deepEqual(await lost(), [['late', null]]);
  });

  test('wins against the creation of a repository that it was faster than, and leaves none behind', async (t) => {
    const { node, bucket, origin, move, lost } = await withBucket(t);
    const wanted = { name: 'late', description: null, defaultBranch: null, storageBucketId: bucket };
    const raced = origin(meanwhile(async () => accepted(await move('new'))));
    assert.equal(codeOf(await createRepository(node, raced, wanted)), 'storage-bucket-not-verified');
    assert.deepEqual(await lost(), []);
  });

  test('loses between the two steps of a deletion, and after them', async (t) => {
    const { node, origin, create, move } = await withBucket(t);
    const id = await create('old');
    const failpoint = async (): Promise<void> => {
      const between = await move('new');
      assert.ok('refused' in between && between.refused.code === 'storage-bucket-place-fixed');
      assert.deepEqual(between.refused.repositories.names, ['old']);
    };
    accepted(await deleteRepository({ ...node, failpoint }, origin(), id));
    const after = await move('new');
    assert.ok('refused' in after && after.refused.code === 'storage-bucket-place-fixed');
    assert.deepEqual(after.refused.deleted?.names, ['old']);
  });

  test('and an undeletion leave the repository in its place, whichever is first', async (t) => {
    const { create, remove, move, undelete, lost } = await withBucket(t);
    const id = await create('old');
    await remove(id);
    const moved = await move(
      'new',
      meanwhile(async () => accepted(await undelete(id))),
    );
    assert.ok('refused' in moved && moved.refused.code === 'storage-bucket-place-fixed');
    assert.deepEqual([moved.refused.repositories.names, moved.refused.deleted], [['old'], undefined]);
    await remove(id);
    const back = await undelete(
      id,
      meanwhile(async () => assert.ok('refused' in (await move('new')))),
    );
    assert.equal(codeOf(back), null);
    assert.deepEqual(await lost(), []);
  });

  test('loses at whatever moment of a deletion it comes', async (t) => {
    const { create, remove, move, lost } = await withBucket(t);
    for (let round = 0; round < 5; round += 1) {
      const id = await create(`r${round}`);
      const moves = Array.from({ length: 4 }, (_, n) => move(`m${round}-${n}`));
      const codes = (await Promise.all([remove(id), ...moves])).slice(1).map(codeOf);
      assert.deepEqual(new Set(codes), new Set(['storage-bucket-place-fixed']));
    }
    assert.deepEqual(
      (await lost()).map(([, why]) => why),
      Array.from({ length: 5 }, () => null),
    );
  });
});

describe('The deletion of a bucket', () => {
  test('wins over an undeletion that it was faster than, and loses against one that was faster', async (t) => {
    const { create, remove, undelete, drop, lost } = await withBucket(t);
    const id = await create('old');
    await remove(id);
    assert.equal(codeOf(await drop(meanwhile(async () => accepted(await undelete(id))))), 'storage-bucket-in-use');
    await remove(id);
    assert.equal(
      codeOf(
        await undelete(
          id,
          meanwhile(async () => accepted(await drop())),
        ),
      ),
      'repository-place-lost',
    );
    assert.deepEqual(await lost(), [['old', 'bucket-deleted']]);
  });
});

test('The layers of a purge stay with their owner if the bucket moved before they left it', async (t) => {
  const { node, account, bucket, create, remove, move, origin } = await withBucket(t);
  /** Versions did that which did not look at purges. */
  const moveAsBefore = () =>
    execute(node, accounts, account, origin(), (state) => {
      const from = state.status === 'open' ? state.storageBuckets.get(bucket) : undefined;
      assert.ok(from !== undefined);
      const place = { provider: from.provider, placeRef: vaultRef('9'.repeat(64)) };
      const change = { id: bucket, from, place, access: null, deleted: [], purged: null };
      return decideBucket(state, ALL_REPOSITORIES, { type: 'ChangeBucket', ...change });
    });
  const objects = createMemoryObjects();
  const tip = objects.commit({ tree: objects.tree({}), seconds: 1 });
  const log = keepLog();
  const asked: string[] = [];
  const platform = createMemoryLayerStore();
  const of = ({ storageBucketId }: { readonly storageBucketId: string | null }) => {
    asked.push(String(storageBucketId));
    return platform;
  };
  const sweeping = {
    ...{ ...node, log, marks: createMemoryPolicyMarks(), layers: { of }, beforeRemoval: async () => undefined },
  };
  const purged = async (name: string) => {
    const id = await create(name);
    await appendPush(node, objects, { id, accountId: account }, { 'refs/heads/main': tip }, 5_000);
    await remove(id);
    accepted(await letLayersGo(node, origin(), { id, all: true, reason: 'purge' }));
    return id;
  };
  await purged('swept');
  node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
  await removePurged(sweeping, { aborted: false });
  assert.equal(asked.length, 1, 'its bucket is where it was');
  const id = await purged('left');
  assert.equal(codeOf(await move('new')), 'storage-bucket-purged');
  accepted(await moveAsBefore());
  node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
  await removePurged(sweeping, { aborted: false });
  assert.equal(asked.length, 1, 'the new place is not touched');
  const line = log.lines.find(({ message }) => message.startsWith('Layers stay with their owner'));
  assert.deepEqual(line?.fields, { repository: id, layers: 1 });
});

test('A bucket is moved or deleted when the layers of its purges have left it, and not before', async (t) => {
  const { node, account, create, remove, move, drop, origin } = await withBucket(t);
  const objects = createMemoryObjects();
  const tip = objects.commit({ tree: objects.tree({}), seconds: 1 });
  const id = await create('purged');
  await appendPush(node, objects, { id, accountId: account }, { 'refs/heads/main': tip }, 5_000);
  await remove(id);
  accepted(await letLayersGo(node, origin(), { id, all: true, reason: 'purge' }));
  const refused = (waitSeconds: number) => ({
    refused: { code: 'storage-bucket-purged', sizeBytes: 5_000, waitSeconds },
  });
  assert.deepEqual(await drop(), refused(60 * 60));
  assert.deepEqual(await move('new'), refused(60 * 60));
  node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
  assert.deepEqual(await drop(), refused(60), 'no worker has come to it yet');
  const layers = { of: () => createMemoryLayerStore() };
  await removePurged({ ...node, log: keepLog(), layers, beforeRemoval: async () => undefined }, { aborted: false });
  accepted(await move('new'));
  assert.ok('deleted' in (await drop()));
});
