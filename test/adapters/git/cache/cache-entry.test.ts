/** One entry of the cache of repositories: what it counts, who may lease it, and what it keeps open. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test } from 'vitest';
import { CacheEntry, type CacheTotals } from '../../../../adapters/git/cache/cache-entry.ts';
import type { CacheFolder, PresentLayer } from '../../../../adapters/git/cache/cache-folder.ts';
import { HeldPacks, scratchMemory } from '../../../../adapters/git/cache/held-packs.ts';
import { createFilePages } from '../../../../adapters/git/packs/file-pages.ts';
import { type OpenPack, openHeldPack } from '../../../../adapters/git/packs/object-source.ts';
import { createObjectCache } from '../../../../adapters/git/packs/pack-file.ts';
import { packIndexFile } from '../../../../adapters/git/packs/pack-index-file.ts';
import { createReadTurns } from '../../../../adapters/git/packs/read-turns.ts';
import { type LayerId, type RepositoryId, uuid } from '../../../../core/kernel/ids.ts';
import type { Layer } from '../../../../core/repository/layer.ts';
import { layerKey } from '../../../../core/repository/layer.ts';
import { rawPack } from '../../../support/raw-pack.ts';

const repository = uuid<RepositoryId>(randomUUID());

function newLayer(pack: string): Layer {
  const id = uuid<LayerId>(randomUUID());
  return {
    id,
    key: layerKey(`repositories/${repository}/layers/${id}.tar`),
    sizeBytes: 1,
    sha256: `sha256 of ${id}`,
    pack,
  };
}

const presentOf = ({ id, sha256, pack }: Layer): PresentLayer => ({ id, sha256, pack, packBytes: 100, idxBytes: 10 });

function newEntry(present: readonly Layer[] = []) {
  const held = new HeldPacks<PresentLayer>({ memory: scratchMemory(), pathOf: (pack) => pack });
  const layers = new Map(present.map((layer) => [layer.id, presentOf(layer)]));
  const folder: CacheFolder = { path: '/nowhere', repository, shrinkEpoch: 0, present: layers, held };
  const totals: CacheTotals = { bytes: 0, openPacks: 0 };
  const packLooks = { hits: 0, misses: 0 };
  return { entry: new CacheEntry({ folder, checked: true, vouched: 0, totals, packLooks }), folder, totals };
}

/** A pack without objects. */
async function emptyPack(): Promise<OpenPack> {
  const pages = createFilePages({ memoryBytesMax: 2 ** 20 });
  const memory = { pages, cache: createObjectCache(2 ** 10), turns: createReadTurns(nextTurn) };
  const pack = rawPack([]);
  const bytes = { pack, idx: packIndexFile([], pack.subarray(-20)) };
  return openHeldPack(memory, 'empty', bytes, { held: () => bytes, packPath: 'empty.pack', idxPath: 'empty.idx' });
}

const neverOpen = () => new Promise<never>(() => undefined);

test('A retired entry is not leased again, and a lease ends once', () => {
  const { entry } = newEntry();
  entry.lease();
  entry.lease();
  assert.deepEqual([entry.release(), entry.isLeased], [false, true]);
  assert.deepEqual([entry.retire(), entry.retire()], [true, false]);
  assert.throws(() => entry.lease(), /is retired/);
  assert.deepEqual([entry.release(), entry.isLeased], [true, false]);
  assert.throws(() => entry.release(), /more often than leased/);
});

test('An entry counts in the totals until it is retired, each pack once, and not afterwards', async () => {
  const [first, same] = [newLayer('a'), newLayer('a')];
  const { entry, totals } = newEntry([first, same]);
  entry.grow(7);
  entry.keepOpen('a', neverOpen());
  assert.deepEqual(totals, { bytes: 117, openPacks: 1 });
  assert.throws(() => entry.keepOpen('a', neverOpen()), /open already/);
  const lost = Promise.reject(new Error('gone'));
  entry.keepOpen('b', lost);
  assert.equal(totals.openPacks, 2);
  await assert.rejects(lost);
  assert.deepEqual([totals.openPacks, entry.openPacks], [1, 1], 'one cannot be opened');
  const { promise: lostLater, reject } = Promise.withResolvers<never>();
  entry.keepOpen('b', lostLater);
  entry.retire();
  assert.deepEqual(totals, { bytes: 0, openPacks: 0 });
  reject(new Error('gone'));
  entry.grow(7);
  entry.keepOpen('c', neverOpen());
  await assert.rejects(lostLater);
  assert.deepEqual([totals, entry.opened('b')], [{ bytes: 0, openPacks: 0 }, null]);
});

test('A layer arrives once for all who wait for it, and is obtained again after a failure', async () => {
  const layer = newLayer('a');
  const { entry, folder } = newEntry();
  let obtained = 0;
  const obtain = async (): Promise<PresentLayer> => {
    obtained += 1;
    if (obtained === 1) throw new Error('no connection');
    folder.present.set(layer.id, presentOf(layer));
    return presentOf(layer);
  };
  const failed = await Promise.allSettled([entry.arrive(layer, obtain), entry.arrive(layer, obtain)]);
  assert.deepEqual([failed.map(({ status }) => status), obtained], [['rejected', 'rejected'], 1]);
  const arriving = [entry.arrive(layer, obtain), entry.arrive(layer, obtain)];
  assert.equal(entry.isFilling, true);
  await entry.filled();
  await Promise.all([...arriving, entry.arrive(layer, obtain)]);
  assert.deepEqual([obtained, entry.isFilling], [2, false]);
});

test('Open layers are the first of their sequence, and are forgotten with their packs when nobody has a lease', async () => {
  const [first, second, other] = [newLayer('a'), newLayer('b'), newLayer('c')];
  const { entry, totals } = newEntry();
  const pack = await emptyPack();
  entry.lease();
  entry.keepOpen('a', Promise.resolve(pack));
  entry.append(1, second.id, pack);
  assert.equal(entry.openLayers, 0, 'a gap');
  entry.append(0, first.id, pack);
  entry.append(0, other.id, pack);
  entry.append(1, second.id, pack);
  assert.equal(entry.openLayers, 2);
  assert.deepEqual([entry.beginsLike([first, second, other]), entry.hasOpen([first, second, other])], [true, false]);
  assert.deepEqual([entry.beginsLike([other]), entry.hasOpen([first]), entry.hasOpen([])], [false, true, true]);
  assert.deepEqual(entry.packsOf(2), [pack], 'each pack once');
  entry.forgetPacks();
  assert.equal(entry.openLayers, 2, 'somebody has a lease');
  entry.release();
  entry.forgetPacks();
  assert.deepEqual([entry.openLayers, entry.openPacks, totals.openPacks, entry.packsOf(2)], [0, 0, 0, []]);
});
