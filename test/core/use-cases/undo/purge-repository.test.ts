/** Purges of repositories of the real git: what they remove, and what stays. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { DEFAULT_PLANS, WAITING_STORAGE_BYTES_MIN } from '../../../../core/account/plans.ts';
import { refName } from '../../../../core/git/ref-name.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import { createFairSlots } from '../../../../core/kernel/fair-slots.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import { DROPPING_BYTES_MAX, REPLACED_LAYERS_KEPT_MS_MIN } from '../../../../core/kernel/limits.ts';
import type { FailpointName } from '../../../../core/ports/failpoints.ts';
import { LayerStoreError } from '../../../../core/ports/layer-store.ts';
import type { ObjectDatabase } from '../../../../core/ports/object-database.ts';
import { createPastEntities } from '../../../../core/runtime/past-entities.ts';
import { removedThrough } from '../../../../core/usage/waiting-storage.ts';
import { compactLayers } from '../../../../core/use-cases/compacting/compact-layers.ts';
import { findManifests, readManifest } from '../../../../core/use-cases/manifests/read-manifest.ts';
import { writeManifestNow } from '../../../../core/use-cases/manifests/write-manifest.ts';
import { pushRefs } from '../../../../core/use-cases/pushing/push-refs.ts';
import { committedObjects } from '../../../../core/use-cases/reading/committed-objects.ts';
import { deleteRepository, findRepositoryById } from '../../../../core/use-cases/repositories/repositories.ts';
import { expireLayers } from '../../../../core/use-cases/sweeping/expire-layers.ts';
import { removePurged } from '../../../../core/use-cases/sweeping/remove-purged.ts';
import {
  PURGE_NOTIFICATION_WAIT_MS,
  PURGE_REWRITING_INTERVAL_MS,
  type PurgeContext,
  planPurge,
  purgeRepository,
} from '../../../../core/use-cases/undo/purge-repository.ts';
import { newRepository, newWebhook } from '../../../support/accounts.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryAccountLog } from '../../../support/memory/account-log.ts';
import { createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { createMemoryObjects } from '../../../support/memory/object-database.ts';
import { appendPush } from '../../../support/memory/pushes.ts';
import { createMemorySnapshots } from '../../../support/memory/snapshots.ts';
import { createMemoryWaitingStorage } from '../../../support/memory/waiting-storage.ts';
import { CAUSE } from '../../../support/node.ts';
import { once, testDatabase } from '../../../support/object-database.ts';

const NEVER = new AbortController().signal;
const RETENTION_MS = 30 * 24 * 60 * 60_000;
const OWNER = { ...CAUSE, actor: { kind: 'user', id: 'ada' } } as const;

/** A repository in which a secret was pushed to `main`, and forced away. */
async function withSecret(context: TestContext, onFailpoint?: (point: FailpointName) => Promise<void>) {
  const started = await startPurging(context, onFailpoint);
  const { reading } = started;
  const { git } = reading;
  const main = git.commit({ file: 'main\n' });
  await reading.push({ 'refs/heads/main': main });
  const secret = git.object('blob', randomBytes(20_000).toString('hex'));
  const tree = git.tree([{ mode: '100644', name: 'secret', id: secret }]);
  const leaked = git.object(
    'commit',
    `tree ${tree}\nparent ${main}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nleak\n`,
  );
  await reading.push({ 'refs/heads/main': leaked });
  const fixed = git.commit({ file: 'fixed\n' }, { branch: 'fixed', parents: [main] });
  await reading.push({ 'refs/heads/main': fixed });
  return { ...started, main, fixed, secret, leaked };
}

/** An empty repository, and what purges it. */
async function startPurging(context: TestContext, onFailpoint?: (point: FailpointName) => Promise<void>) {
  const reading = await startGitReading();
  context.onTestFinished(() => reading.close());
  const { node, database, account } = reading;
  const { events, entities } = node;
  const { id } = await reading.current();
  const past = createPastEntities({
    ...{ events, entities, snapshots: createMemorySnapshots(), onFault: () => undefined },
    complete: async (event) => event,
  });
  const marks = createMemoryPolicyMarks();
  const log = keepLog();
  const purging: PurgeContext = {
    ...node,
    ...{ marks, plans: DEFAULT_PLANS },
    ...{ digest, past, layers: layersIn(database.layers), drops: database.database, retentionMs: RETENTION_MS },
    readModels: { ...createMemoryAccountLog({ events, digest }), ...createMemoryWaitingStorage(events) },
    failpoint: onFailpoint ?? (async () => undefined),
    notifiedTo: async () => null,
    manifestNow: (of) => writeManifestNow({ ...purging, layers: layersIn(database.layers), log }, of),
    pause: async () => assert.fail('there is nothing to wait for'),
    purgeSlots: createFairSlots({ slots: 1, slotsPerKey: 1 }),
  };
  const origin = { account, cause: OWNER };
  const sweeping = {
    ...node,
    ...{ marks, layers: layersIn(database.layers), past, log },
    beforeRemoval: async () => undefined,
  };
  const stored = async () => {
    const all = await Array.fromAsync(database.layers.list('repositories/'));
    const layers = all.filter(({ key }) => key.endsWith('.tar'));
    return { count: layers.length, bytes: layers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
  };
  return {
    ...{ reading, id, stored, purging, origin },
    newestManifest: async () => {
      const store = database.layers;
      const manifest = (await findManifests(store, { repository: id, revision: null })).get(id);
      const read = manifest === undefined ? null : await readManifest(store, manifest);
      return read === null || 'invalid' in read ? null : read;
    },
    plan: () => planPurge(purging, origin, id, NEVER),
    purge: () => purgeRepository(purging, origin, id, NEVER),
    sweep: () => removePurged(sweeping, NEVER),
    waiting: async () =>
      purging.readModels.waitingStorageBytes(account, await removedThrough({ events, marks: purging.marks })),
    expire: () => expireLayers({ ...sweeping, retentionMs: RETENTION_MS }, NEVER),
  };
}

/** Which of the ids a node with an empty cache finds, whoever asks. */
async function found(reading: GitReading, ids: readonly ObjectId[]): Promise<readonly boolean[]> {
  const cold = await testDatabase({ layers: reading.database.layers });
  try {
    const repository = await reading.current();
    const reader = await cold.database.open(committedObjects(repository, repository.entity));
    const tips = [...repository.entity.state.refs.entries()].map(([, { id }]) => id);
    assert.equal((await reader.reachable(tips, tips, 'all')).size, new Set(tips).size);
    const infos = await reader.lookup(ids);
    reader.close();
    return infos.map((info) => info !== null);
  } finally {
    await cold.close();
  }
}

describe('A purge of a living repository', () => {
  test('removes what no ref reaches, from the repository immediately and from storage an hour later', async (context) => {
    const { reading, main, fixed, secret, leaked, stored, plan, purge, sweep, expire } = await withSecret(context);
    assert.deepEqual(await found(reading, [main, fixed, leaked, secret]), [true, true, true, true]);
    const before = await stored();
    const planned = await plan();
    assert.deepEqual(await stored(), before, 'a dry run stores nothing');
    const purged = await purge();
    assert.ok(!('refused' in planned) && !('refused' in purged), JSON.stringify([planned, purged]));
    assert.equal(purged.freedBytes, planned.freedBytes);
    assert.ok(purged.event !== null && planned.event === null);
    assert.deepEqual(await found(reading, [main, fixed, leaked, secret]), [true, true, false, false]);
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN - 1);
    await sweep();
    assert.ok((await stored()).count > 1, 'requests under way may read them');
    reading.node.clock.advance(1);
    await sweep();
    const after = await stored();
    assert.deepEqual([after.count, before.bytes - after.bytes], [1, purged.freedBytes]);
    assert.deepEqual(await found(reading, [main, fixed]), [true, true]);
    await reading.push({
      'refs/heads/more': reading.git.commit({ more: 'more\n' }, { branch: 'more', parents: [fixed] }),
    });
    const { entity } = await reading.current();
    const page = await reading.node.events.readStream(entity.stream, { direction: 'forwards', limit: 100 });
    const expiries = page.filter(({ type }) => type === 'LayersExpired');
    assert.deepEqual(
      expiries.map(({ data, actor }) => [data['reason'], actor.kind]),
      [['purge', 'user']],
    );
    reading.node.clock.advance(RETENTION_MS);
    await expire();
    const { entity: later } = await reading.current();
    assert.equal(later.revision, entity.revision, 'the retention has nothing left to say');
  });

  test('writes the manifest before it answers, which names none of the layers that leave', async (context) => {
    const { reading, purge, newestManifest } = await withSecret(context);
    const before = [...(await reading.current()).entity.state.layers].map(({ id }) => id);
    assert.ok(!('refused' in (await purge())));
    const { entity } = await reading.current();
    const manifest = await newestManifest();
    assert.equal(manifest?.revision, entity.revision);
    assert.deepEqual(
      manifest.layers.filter(({ id }) => before.includes(id)),
      [],
    );
  });

  test('is done though the store takes no manifest', async (context) => {
    const { reading, purge, newestManifest } = await withSecret(context, async (point) => {
      if (point !== 'manifest-refs-stored') return;
      throw new LayerStoreError('layer-store-unavailable', 'no store');
    });
    const purged = await purge();
    assert.ok(!('refused' in purged) && purged.event !== null);
    assert.equal((await reading.current()).entity.state.layers.length, 1);
    assert.equal(await newestManifest(), null);
  });

  test('takes what earlier compactions replaced along', async (context) => {
    const { reading, id, stored, purge, sweep, purging, origin } = await withSecret(context);
    const parts = { objects: reading.database.database, layers: purging.layers, failpoint: purging.failpoint };
    const compacted = await compactLayers(
      { ...reading.node, ...parts },
      { account: origin.account, repository: id },
      NEVER,
    );
    assert.equal(compacted, 'compacted');
    const purged = await purge();
    assert.ok(!('refused' in purged) && purged.event !== null);
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
    await sweep();
    assert.equal((await stored()).count, 1);
    assert.deepEqual(await purge(), { event: null, freedBytes: 0 });
  });

  test('that was killed after the objects were dropped is finished by the next one', async (context) => {
    let alive = false;
    const killed = await withSecret(context, async (point) => {
      if (point === 'dropping-appended' && !alive) throw new Error('killed');
    });
    await assert.rejects(killed.purge(), /killed/);
    alive = true;
    const purged = await killed.purge();
    assert.ok(!('refused' in purged) && purged.event !== null);
    killed.reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
    await killed.sweep();
    assert.equal((await killed.stored()).count, 1);
  });

  test('waits for the webhooks of the last push, and is refused in words if they stay behind', async (context) => {
    const { reading, purging, origin, id, stored } = await withSecret(context);
    await newWebhook(reading.node, origin.account);
    const before = await stored();
    const head = await reading.node.events.head();
    let notified = true;
    let pausedMs = 0;
    const behind: PurgeContext = {
      ...purging,
      notifiedTo: async () => (notified && pausedMs >= PURGE_NOTIFICATION_WAIT_MS ? head : LOG_START),
      pause: async (ms) => {
        pausedMs += ms;
        if (notified) assert.deepEqual(await stored(), before, 'nothing is packed before');
        (await purging.purgeSlots.acquire(origin.account))();
      },
    };
    const purged = await purgeRepository(behind, origin, id, NEVER);
    assert.ok(!('refused' in purged) && purged.event !== null);
    assert.equal(pausedMs, PURGE_NOTIFICATION_WAIT_MS, 'they came at the last moment');
    pausedMs = 0;
    const { entity } = await reading.current();
    notified = false;
    reading.node.clock.advance(PURGE_REWRITING_INTERVAL_MS);
    await reading.push({ 'refs/heads/gone': reading.git.commit({ gone: 'gone\n' }, { branch: 'gone' }) });
    await reading.push({ 'refs/heads/gone': null });
    assert.deepEqual(await purgeRepository(behind, origin, id, NEVER), { refused: { code: 'webhooks-not-notified' } });
    assert.equal(pausedMs, PURGE_NOTIFICATION_WAIT_MS);
    assert.equal((await reading.current()).entity.revision, Number(entity.revision) + 2);
  });

  test('waits for nobody where the account has no webhook, however far behind those of others are', async (context) => {
    const { purging, origin, id } = await withSecret(context);
    const purged = await purgeRepository({ ...purging, notifiedTo: async () => LOG_START }, origin, id, NEVER);
    assert.ok(!('refused' in purged) && purged.event !== null);
  });

  test('says what it would free while webhooks are still to be told of the last push', async (context) => {
    const { reading, plan, purging, origin, id } = await withSecret(context);
    await newWebhook(reading.node, origin.account);
    const expected = await plan();
    assert.ok(!('refused' in expected) && expected.freedBytes > 0);
    const behind: PurgeContext = { ...purging, notifiedTo: async () => LOG_START };
    assert.deepEqual(await planPurge(behind, origin, id, NEVER), expected);
  });

  test('is refused within an hour of the last one that rewrote the repository, with the time to wait', async (context) => {
    const { reading, plan, purge, purging, origin, stored, id } = await withSecret(context);
    const leave = async (name: string) => {
      await reading.push({ [`refs/heads/${name}`]: reading.git.commit({ [name]: `${name}\n` }, { branch: name }) });
      await reading.push({ [`refs/heads/${name}`]: null });
    };
    assert.ok(!('refused' in (await purge())));
    assert.deepEqual(await purge(), { event: null, freedBytes: 0 }, 'nothing to rewrite, and not counted');
    await leave('gone');
    reading.node.clock.advance(60_000);
    const before = await stored();
    assert.deepEqual(await purge(), { refused: { code: 'repository-rewritten-lately', waitSeconds: 59 * 60 } });
    assert.deepEqual(await stored(), before);
    assert.ok(!('refused' in (await plan())), 'a dry run is not refused');
    reading.node.clock.advance(PURGE_REWRITING_INTERVAL_MS - 60_001);
    assert.deepEqual(await purge(), { refused: { code: 'repository-rewritten-lately', waitSeconds: 1 } });
    reading.node.clock.advance(1);
    const purged = await purge();
    assert.ok(!('refused' in purged) && purged.event !== null);
    await deleteRepository(purging, origin, id);
    const deleted = await purge();
    assert.ok(!('refused' in deleted) && deleted.event !== null, 'the purge of a deleted one never is');
  });

  test('is refused while what purges took out is beyond the quota, however much the service did', async (context) => {
    const { reading, main, purging, origin, id, purge, sweep, waiting } = await withSecret(context);
    const quota = WAITING_STORAGE_BYTES_MIN;
    const small = { ...DEFAULT_PLANS.FREE, storage_bytes: 0 };
    const plans = { FREE: small, PRO: small, PLATFORM: small };
    const bounded: PurgeContext = { ...purging, plans };
    /** Deletes and purges a repository of this size. */
    const purgeDeleted = async (bytes: number) => {
      const other = await newRepository(reading.node, origin.account, `of-${bytes}`, 'main');
      const found = await findRepositoryById(reading.node, origin.account, other.id);
      assert.ok(found !== null);
      await appendPush(reading.node, createMemoryObjects(), found, { 'refs/heads/main': main }, bytes);
      await deleteRepository(purging, origin, other.id);
      const purged = await purgeRepository(bounded, origin, other.id, NEVER);
      assert.ok(!('refused' in purged) && purged.freedBytes === bytes, 'a deleted one is never refused');
    };
    await purgeDeleted(quota);
    reading.node.clock.advance(60_000);
    await purgeDeleted(1);
    assert.equal(await waiting(), quota + 1);
    assert.deepEqual(await purgeRepository(bounded, origin, id, NEVER), {
      refused: { code: 'waiting-storage-full', quota, waitSeconds: 59 * 60 },
    });
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN - 60_000);
    assert.deepEqual(await purgeRepository(bounded, origin, id, NEVER), {
      refused: { code: 'waiting-storage-full', quota, waitSeconds: 60 },
    });
    await sweep();
    assert.equal(await waiting(), 1);
    const purged = await purgeRepository(bounded, origin, id, NEVER);
    assert.ok(!('refused' in purged) && purged.event !== null);
    assert.ok((await waiting()) > 1);
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
    await sweep();
    assert.equal(await waiting(), 0);
    assert.deepEqual(await purge(), { event: null, freedBytes: 0 });
  });

  test('is not refused while what purges took out is no more than the quota', async (context) => {
    const { reading, main, purging, origin, id, waiting } = await withSecret(context);
    const small = { ...DEFAULT_PLANS.FREE, storage_bytes: 0 };
    const bounded: PurgeContext = { ...purging, plans: { FREE: small, PRO: small, PLATFORM: small } };
    const other = await newRepository(reading.node, origin.account, 'other', 'main');
    const found = await findRepositoryById(reading.node, origin.account, other.id);
    assert.ok(found !== null);
    const tips = { 'refs/heads/main': main };
    await appendPush(reading.node, createMemoryObjects(), found, tips, WAITING_STORAGE_BYTES_MIN);
    await deleteRepository(purging, origin, other.id);
    await purgeRepository(bounded, origin, other.id, NEVER);
    assert.equal(await waiting(), WAITING_STORAGE_BYTES_MIN);
    const purged = await purgeRepository(bounded, origin, id, NEVER);
    assert.ok(!('refused' in purged) && purged.event !== null);
  });

  test('is refused where the repository is too large to be written again', async (context) => {
    const { reading, purging, origin, id, main } = await withSecret(context);
    const grow = async (bytes: number) =>
      appendPush(reading.node, createMemoryObjects(), await reading.current(), { 'refs/heads/x': main }, bytes);
    await grow(DROPPING_BYTES_MAX);
    const refused = { refused: { code: 'repository-too-large-to-purge' } };
    assert.deepEqual(await planPurge(purging, origin, id, NEVER), refused);
    assert.deepEqual(await purgeRepository(purging, origin, id, NEVER), refused);
  });
});

/** Pushes to `main` as a version did that stored whatever a pack held. The state is clean after it. */
async function pushAsBefore({ node, database, git, current }: GitReading, after: ObjectId, junk: readonly ObjectId[]) {
  const repository = await current();
  const ref = refName('refs/heads/main');
  const before = repository.entity.state.refs.get(ref)?.id ?? null;
  const reached = git.line(['rev-list', '--objects', '--no-object-names', after]).split('\n').map(objectId);
  const objects: ObjectDatabase = {
    ...database.database,
    receive: async (options) => {
      const received = await database.database.receive(options);
      return 'refused' in received ? received : { ...received, leavesOver: async () => false };
    },
  };
  const outcome = await pushRefs(
    {
      ...{ ...node, objects, layers: layersIn(database.layers), onLayer: () => undefined },
      usage: { usageOf: async () => ({ storageBytes: 0, transferBytes: 0, ingressBytes: 0 }) },
    },
    {
      ...{ repository, quotas: DEFAULT_PLANS.PRO, cause: CAUSE, refusedNames: 0, atomic: false, signal: NEVER },
      ...{ guarding: async () => ({ guards: [] }), pushOptions: [], receivedBytes: () => 500, door: 'git' },
      ...{ commands: [{ ref, before, after }], pack: once(git.packOf([...new Set([...reached, ...junk])])) },
    },
  );
  assert.deepEqual('results' in outcome ? outcome.results : outcome, [{ ref, code: null }]);
  assert.equal((await current()).entity.state.clean, true);
}

describe('A purge of a repository that is called clean', () => {
  async function clean(context: TestContext, junk: boolean) {
    const started = await startPurging(context);
    const { reading } = started;
    const lone = reading.git.object('blob', randomBytes(20_000).toString('hex'));
    const main = reading.git.commit({ file: 'main\n' });
    await pushAsBefore(reading, main, junk ? [lone] : []);
    return { ...started, lone, main };
  }

  test('removes what no ref ever reached from a layer of an older version, and then finds nothing', async (context) => {
    const { reading, main, lone, plan, purge, sweep, stored } = await clean(context, true);
    const more = reading.git.commit({ more: 'more\n' });
    await reading.push({ 'refs/heads/main': more });
    assert.deepEqual(await found(reading, [main, more, lone]), [true, true, true]);
    const before = await stored();
    const planned = await plan();
    assert.deepEqual(await stored(), before, 'a dry run stores nothing');
    const purged = await purge();
    assert.ok(!('refused' in planned) && !('refused' in purged), JSON.stringify([planned, purged]));
    assert.ok(purged.event !== null && purged.freedBytes > 20_000);
    assert.equal(purged.freedBytes, planned.freedBytes);
    assert.deepEqual(await found(reading, [main, more, lone]), [true, true, false]);
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
    await sweep();
    assert.equal((await stored()).count, 1);
    assert.deepEqual(await purge(), { event: null, freedBytes: 0 });
  });

  test('packs nothing where refs reach everything, though a layer holds an object again', async (context) => {
    const { reading, purging, main, origin, id } = await clean(context, false);
    const next = reading.git.commit({ file: 'next\n' });
    await pushAsBefore(reading, next, [main, reading.git.object('blob', 'main\n')]);
    const { revision } = (await reading.current()).entity;
    const drops = { ...purging.drops, keep: async () => assert.fail('nothing is packed') };
    const nothing = { event: null, freedBytes: 0 };
    assert.deepEqual(await planPurge({ ...purging, drops }, origin, id, NEVER), nothing);
    assert.deepEqual(await purgeRepository({ ...purging, drops }, origin, id, NEVER), nothing);
    assert.equal((await reading.current()).entity.revision, revision);
  });

  test('is refused where its layers hold more and are too large to be written again', async (context) => {
    const { reading, purging, main, origin, id } = await clean(context, false);
    const repository = await reading.current();
    await appendPush(reading.node, createMemoryObjects(), repository, { 'refs/heads/x': main }, DROPPING_BYTES_MAX);
    for (const holds of [true, false]) {
      const context = { ...purging, drops: { ...purging.drops, holdMore: async () => holds } };
      const expected = holds ? { refused: { code: 'repository-too-large-to-purge' } } : { event: null, freedBytes: 0 };
      assert.deepEqual(await planPurge(context, origin, id, NEVER), expected);
      assert.deepEqual(await purgeRepository(context, origin, id, NEVER), expected);
    }
  });
});

describe('A purge of a deleted repository', () => {
  test('removes all its layers', async (context) => {
    const { reading, id, stored, plan, purge, sweep, purging, origin } = await withSecret(context);
    await deleteRepository(purging, origin, id);
    const { bytes } = await stored();
    assert.deepEqual(await plan(), { event: null, freedBytes: bytes });
    const purged = await purge();
    assert.ok(!('refused' in purged) && purged.event !== null);
    assert.equal(purged.freedBytes, bytes);
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
    await sweep();
    assert.deepEqual(await stored(), { count: 0, bytes: 0 });
  });
});
