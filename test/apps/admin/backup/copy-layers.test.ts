/** How the objects of a layers' store get into a backup, and out of it beside newer ones. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type TestContext, test } from 'vitest';
import { createFilesystemLayerStore } from '../../../../adapters/filesystem/layer-store.ts';
import { checkpointsToLeaveOut, copyObjects, copyUsedStore } from '../../../../apps/admin/backup/copy-layers.ts';
import { singleChunk } from '../../../../core/kernel/single-chunk.ts';
import type { LayerStore } from '../../../../core/ports/layer-store.ts';
import { layerKey } from '../../../../core/repository/layer.ts';
import { writeManifest } from '../../../../core/use-cases/manifests/write-manifest.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { keepLog } from '../../../support/log.ts';
import { testPastEntities } from '../../../support/past-repositories.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const newStore = async (context: TestContext): Promise<LayerStore> =>
  createFilesystemLayerStore({ directory: await tempDir(context) });

async function putAll(store: LayerStore, keys: readonly string[], text: string): Promise<void> {
  for (const key of keys) await store.put(layerKey(key), singleChunk(Buffer.from(text)), text.length);
}

async function contentOf(store: LayerStore): Promise<Readonly<Record<string, string>>> {
  const content: Record<string, string> = {};
  for await (const { key } of store.list('')) {
    content[key] = Buffer.concat(await Array.fromAsync(await store.get(key))).toString('utf8');
  }
  return content;
}

const sizeOf = (size: number): string => String(size).padStart(16, '0');

test('objects that are there stay as they are, and checkpoints stay out where the store has newer ones', async (context) => {
  const [backup, store] = [await newStore(context), await newStore(context)];
  const saved = ['a', 'b', 'c', 'd'].map((account) => `checkpoints/${account}/${sizeOf(20)}`);
  await putAll(backup, [...saved, 'erasures/x', 'erasures/y'], 'saved');
  const newer = [
    `checkpoints/a/${sizeOf(30)}`,
    `checkpoints/b/lost/${sizeOf(20)}`,
    `checkpoints/c/${sizeOf(10)}`,
    'erasures/y',
    'erasures/z',
  ];
  await putAll(store, newer, 'newer');
  await copyObjects(backup, store, await checkpointsToLeaveOut(store));
  const added = { [saved[2] ?? '']: 'saved', [saved[3] ?? '']: 'saved', 'erasures/x': 'saved' };
  assert.deepEqual(await contentOf(store), { ...Object.fromEntries(newer.map((key) => [key, 'newer'])), ...added });
});

test('a copy of a store in use holds every layer of the newest manifest, also one that came during the copy', async (context) => {
  const { store, newest } = await usedStore(context);
  let listings = 0;
  const used: LayerStore = {
    ...store,
    async *list(prefix) {
      listings += 1;
      const isFirst = listings === 1;
      for await (const object of store.list(prefix)) if (!isFirst || object.key !== newest) yield object;
    },
  };
  const copy = await newStore(context);
  assert.deepEqual((await copyUsedStore(used, copy)).lacking, []);
  assert.deepEqual(await keysOf(copy), await keysOf(store));
});

test('a copy of a store that has lost a layer holds the rest, and names the repository', async (context) => {
  const { store, newest, id } = await usedStore(context);
  assert.ok(newest !== undefined);
  await store.delete(newest);
  const copy = await newStore(context);
  assert.deepEqual((await copyUsedStore(store, copy)).lacking, [id]);
  assert.deepEqual(await keysOf(copy), await keysOf(store));
});

/** A store that holds a repository of two layers and its manifest. */
async function usedStore(context: TestContext) {
  const reading = await startGitReading();
  cleanUp(context, () => reading.close());
  for (const name of ['a', 'b']) {
    await reading.push({ 'refs/heads/main': reading.git.commit({ [name]: randomBytes(300) }) });
  }
  const { id, entity } = await reading.current();
  const { node, account } = reading;
  const store = reading.database.layers;
  const manifests = { ...node, layers: layersIn(store), past: testPastEntities(node), log: keepLog(), retentionMs: 0 };
  assert.equal((await writeManifest(manifests, { account, repository: id })).outcome, 'written');
  return { store, id, newest: [...entity.state.layers].at(-1)?.key };
}

async function keysOf(store: LayerStore): Promise<readonly string[]> {
  return (await Array.fromAsync(store.list('repositories/'), ({ key }) => key)).toSorted();
}
