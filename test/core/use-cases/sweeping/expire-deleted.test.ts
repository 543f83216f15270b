/** The layers of a deleted repository leave storage after the retention, and not before. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { streamName } from '../../../../core/kernel/envelope.ts';
import { REPLACED_LAYERS_KEPT_MS_MIN } from '../../../../core/kernel/limits.ts';
import { decideRepository } from '../../../../core/repository/decide.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import { execute } from '../../../../core/runtime/execute.ts';
import { createPastEntities } from '../../../../core/runtime/past-entities.ts';
import { findManifests, readManifest } from '../../../../core/use-cases/manifests/read-manifest.ts';
import { type ManifestOf, writeManifestNow } from '../../../../core/use-cases/manifests/write-manifest.ts';
import { closeRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { expireDeleted } from '../../../../core/use-cases/sweeping/expire-deleted.ts';
import { removePurged } from '../../../../core/use-cases/sweeping/remove-purged.ts';
import { startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { createMemorySnapshots } from '../../../support/memory/snapshots.ts';
import { CAUSE } from '../../../support/node.ts';

const NEVER = new AbortController().signal;
const RETENTION_MS = 30 * 24 * 60 * 60_000;

async function withPushes(context: TestContext) {
  const reading = await startGitReading();
  context.onTestFinished(() => reading.close());
  const { node, database, account, git } = reading;
  for (const text of ['one', 'two']) await reading.push({ 'refs/heads/main': git.commit({ [text]: text }) });
  const { id } = await reading.current();
  const origin = { account, cause: CAUSE };
  const past = createPastEntities({
    ...node,
    ...{ complete: async (event) => event, snapshots: createMemorySnapshots(), onFault: () => undefined },
  });
  const sweeping = {
    ...node,
    ...{ marks: createMemoryPolicyMarks(), layers: layersIn(database.layers), past, log: keepLog() },
    beforeRemoval: async () => undefined,
  };
  return {
    ...{ reading, sweeping },
    remove: () => closeRepository(node, origin, id),
    reopen: () =>
      execute(node, repositories, id, origin, (state) => decideRepository(state, { type: 'ReopenRepository' })),
    expire: () => {
      const manifests = { ...sweeping, retentionMs: RETENTION_MS };
      const manifestNow = (of: ManifestOf) => writeManifestNow(manifests, of);
      return expireDeleted({ ...sweeping, retentionMs: RETENTION_MS, manifestNow }, NEVER);
    },
    sweep: () => removePurged(sweeping, NEVER),
    stored: async () => {
      const stored = await Array.fromAsync(database.layers.list('repositories/'));
      return stored.filter(({ key }) => key.endsWith('.tar')).length;
    },
    newestManifest: async () => {
      const store = database.layers;
      const found = (await findManifests(store, { repository: id, revision: null })).get(id);
      const manifest = found === undefined ? null : await readManifest(store, found);
      return manifest === null || 'invalid' in manifest ? null : manifest;
    },
    expiries: async () => {
      const page = await node.events.readStream(streamName('repository', id), { direction: 'forwards', limit: 100 });
      return page.filter(({ type }) => type === 'LayersExpired').map(({ actor, data }) => [actor.kind, data['reason']]);
    },
  };
}

describe('The layers of a deleted repository', () => {
  test('stay for the retention, then go with one event, and leave storage an hour later', async (context) => {
    const { reading, remove, expire, sweep, stored, expiries } = await withPushes(context);
    await remove();
    reading.node.clock.advance(RETENTION_MS - 1);
    await expire();
    assert.deepEqual(await expiries(), []);
    reading.node.clock.advance(1);
    await expire();
    await expire();
    assert.deepEqual(await expiries(), [['system', 'retention']]);
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN - 1);
    await sweep();
    assert.equal(await stored(), 2);
    reading.node.clock.advance(1);
    await sweep();
    assert.equal(await stored(), 0);
  });

  test('are no longer named by its manifest, which is written with the event', async (context) => {
    const { reading, remove, expire, stored, newestManifest } = await withPushes(context);
    await remove();
    assert.equal(await newestManifest(), null);
    reading.node.clock.advance(RETENTION_MS);
    await expire();
    const manifest = await newestManifest();
    assert.deepEqual([manifest?.name, manifest?.layers, manifest?.refs.count], ['ada/r', [], 0]);
    assert.equal(await stored(), 2);
  });

  test('stay while it is undeleted, and count from its last deletion', async (context) => {
    const { reading, remove, reopen, expire, expiries } = await withPushes(context);
    await remove();
    reading.node.clock.advance(RETENTION_MS);
    assert.ok(!('refused' in (await reopen())));
    await expire();
    assert.deepEqual(await expiries(), []);
    await remove();
    reading.node.clock.advance(RETENTION_MS - 1);
    await expire();
    assert.deepEqual(await expiries(), []);
    reading.node.clock.advance(1);
    await expire();
    assert.equal((await expiries()).length, 1);
  });

  test('stay if it was undeleted and deleted again while nobody swept', async (context) => {
    const { reading, remove, reopen, expire, expiries } = await withPushes(context);
    await remove();
    reading.node.clock.advance(RETENTION_MS);
    await reopen();
    await remove();
    await expire();
    assert.deepEqual(await expiries(), [], 'the first deletion is old, but the second is not');
  });

  test('leave storage though the process died before it had removed them all', async (context) => {
    const { reading, sweeping, remove, expire, sweep, stored } = await withPushes(context);
    await remove();
    reading.node.clock.advance(RETENTION_MS);
    await expire();
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN);
    let left = 1;
    const { layers } = reading.database;
    const dying = {
      ...layers,
      delete: async (key: Parameters<typeof layers.delete>[0]) => {
        left -= 1;
        if (left < 0) throw new Error('killed');
        await layers.delete(key);
      },
    };
    await assert.rejects(removePurged({ ...sweeping, layers: layersIn(dying) }, NEVER), /killed/);
    assert.equal(await stored(), 1);
    await sweep();
    assert.equal(await stored(), 0);
  });
});
