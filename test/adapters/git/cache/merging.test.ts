/** Small packs that are merged in the background, and bitmaps for clones. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, test } from 'vitest';
import { openCacheEntries } from '../../../../adapters/git/cache/cache-entries.ts';
import {
  type CacheFolder,
  makeCacheFolder,
  type PresentLayer,
  packPath,
} from '../../../../adapters/git/cache/cache-folder.ts';
import { FolderMerges } from '../../../../adapters/git/cache/folder-merges.ts';
import { scratchMemory } from '../../../../adapters/git/cache/held-packs.ts';
import { choosePacks } from '../../../../adapters/git/cache/pack-merging.ts';
import { BackgroundWork } from '../../../../adapters/git/process/background-work.ts';
import { type LayerId, type ObjectId, objectId, type RepositoryId, uuid } from '../../../../core/kernel/ids.ts';
import { LAYERS_MAX } from '../../../../core/kernel/limits.ts';
import type { CommittedObjects, RefsView } from '../../../../core/ports/object-database.ts';
import type { Layer } from '../../../../core/repository/layer.ts';
import { layerKey } from '../../../../core/repository/layer.ts';
import { filesBelow } from '../../../support/files-below.ts';
import { type TestRepository, temporaryFolder, testRepository } from '../../../support/git.ts';
import { loggingGit } from '../../../support/logging-git.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { once, type TestDatabase, testDatabase } from '../../../support/object-database.ts';

const folder = temporaryFolder('merging');
afterAll(() => folder.remove());

/** Pushes some commits one by one, the last on top; every other push also brings a blob that nothing refers to. */
async function pushes(database: TestDatabase, repository: TestRepository, count: number, objects: CommittedObjects) {
  const ids: ObjectId[] = [];
  let current = objects;
  for (let index = 0; index < count; index += 1) {
    const before = repository.line(['for-each-ref', '--format=^%(objectname)', 'refs/heads/main']);
    const commit = repository.commit({ [`file-${index % 3}`]: randomBytes(500), text: `line\n`.repeat(200 + index) });
    current = await database.push(
      current,
      repository.pack(before === '' ? [commit] : [commit, before], { thin: true }),
    );
    ids.push(commit);
    if (index % 2 === 1) continue;
    const loose = repository.object('blob', `unreachable ${randomBytes(8).toString('hex')}`);
    current = await database.push(current, repository.packOf([loose]));
    ids.push(loose);
  }
  return { objects: current, ids };
}

/** A store, and how many layers were fetched from it. */
function countedLayers() {
  const inner = createMemoryLayerStore();
  let count = 0;
  const get: typeof inner.get = (key, range) => {
    count += 1;
    return inner.get(key, range);
  };
  return { layers: { ...inner, get }, gets: () => count };
}

async function packsIn(database: TestDatabase): Promise<number> {
  const names = await filesBelow(join(database.directory, 'repositories'));
  return names.filter((name) => name.endsWith('.pack')).length;
}

async function assertAllThere(database: TestDatabase, objects: CommittedObjects, ids: readonly ObjectId[]) {
  const reader = await database.database.open(objects);
  const found = await reader.lookup(ids);
  assert.deepEqual(
    found.map((info) => info?.id ?? null),
    ids,
  );
  reader.close();
}

describe('merging packs', () => {
  test('keeps every object, reached or not, in few packs, against which later pushes are checked', async () => {
    const layers = createMemoryLayerStore();
    const database = await testDatabase({ layers, packsMax: 6 });
    const repository = testRepository(join(folder.path, 'many'));
    const first = await pushes(database, repository, 12, database.newObjects());
    // Packs that arrived during the first merge are merged when the repository is next opened.
    for (let round = 0; round < 2; round += 1) {
      await assertAllThere(database, first.objects, first.ids);
      await database.database.settled();
    }
    assert.ok((await packsIn(database)) < 8, `${await packsIn(database)} packs`);
    const second = await pushes(database, repository, 6, first.objects);
    await assertAllThere(database, second.objects, [...first.ids, ...second.ids]);
    const reader = await database.database.open(second.objects);
    assert.equal(await reader.isAncestor(first.ids[0] ?? assert.fail(), second.ids.at(-1) ?? assert.fail()), true);
    reader.close();
    assert.deepEqual(database.warnings, []);
    await database.close();
  });

  test('does not disturb a reader of the old packs, and includes layers that arrive in between', async () => {
    const database = await testDatabase({ packsMax: 6 });
    const repository = testRepository(join(folder.path, 'meanwhile'));
    const { objects, ids } = await pushes(database, repository, 3, database.newObjects());
    const old = await database.database.open(objects);
    const all = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const loose = repository.object('blob', `concurrent ${index}`);
        return { loose, received: await database.receive(objects, repository.packOf([loose])) };
      }),
    );
    let current = objects;
    for (const { loose, received } of all) {
      if ('refused' in received) assert.fail(received.detail);
      current = await database.commit(current, received);
      await assertAllThere(database, current, [...ids, loose]);
    }
    await database.database.settled();
    await assertAllThere(database, current, [...ids, ...all.map(({ loose }) => loose)]);
    assert.deepEqual((await old.commits(ids)).map((commit) => commit?.id).filter((id) => id !== undefined).length, 3);
    old.close();
    assert.deepEqual(database.warnings, []);
    await database.close();
  });

  test('waits for the compaction of a busy repository, which fetches no layer, though it comes late', async () => {
    const { layers, gets } = countedLayers();
    const database = await testDatabase({ layers });
    const repository = testRepository(join(folder.path, 'busy'));
    const { objects, ids } = await pushes(database, repository, 2 * LAYERS_MAX, database.newObjects());
    assert.equal(objects.layers.length, 3 * LAYERS_MAX);
    await assertAllThere(database, objects, ids);
    await database.database.settled();
    const merged = await database.database.merge(objects, [...objects.layers], new AbortController().signal);
    assert.ok(merged.objectCount > ids.length);
    assert.equal(gets(), 0);
    await merged.discard();
    await database.close();
  });

  test('joins small packs without a search for deltas, which git makes in the result and larger ones', async () => {
    const log = join(folder.path, 'merging-git.log');
    const database = await testDatabase({ gitPath: loggingGit(log) });
    const { signal } = new AbortController();
    const started = async (objects: CommittedObjects, layers: readonly Layer[] = [...objects.layers]) => {
      await writeFile(log, '');
      const merged = await database.database.merge(objects, layers, signal);
      await merged.discard();
      return { git: await readFile(log, 'utf8'), objectCount: merged.objectCount };
    };
    const repository = testRepository(join(folder.path, 'joined'));
    const { objects, ids } = await pushes(database, repository, 12, database.newObjects());
    const small = await started(objects);
    assert.match(small.git, /^index-pack --threads=1 -o [^\n]+\n$/);
    assert.ok(small.objectCount > ids.length);
    const large = await database.push(objects, repository.packOf([repository.object('blob', randomBytes(2 ** 20))]));
    const repacked = await started(large);
    assert.match(repacked.git, /^index-pack --threads=1 -o [^\n]+\npack-objects --stdin-packs [^\n]+\n$/);
    assert.equal(repacked.objectCount, small.objectCount + 1);
    const again = await database.push(large, repository.packOf([repository.object('blob', randomBytes(2 ** 20))]));
    const twoLarge = await started(again, [...again.layers].slice(-2));
    assert.match(twoLarge.git, /^pack-objects --stdin-packs [^\n]+\n$/);
    assert.equal(twoLarge.objectCount, 2);
    await database.close();
  });

  test('goes on without a join of packs that were made to take git long', async () => {
    const gitPath = join(folder.path, 'slow-git.sh');
    const endless = 'case "$1 $2" in "index-pack --threads=1") while :; do :; done;; esac';
    await writeFile(gitPath, `#!/bin/sh\n${endless}\nexec git "$@"\n`, { mode: 0o755 });
    const database = await testDatabase({ gitPath });
    const repository = testRepository(join(folder.path, 'slow'));
    const { objects, ids } = await pushes(database, repository, 3, database.newObjects());
    const merged = await database.database.merge(objects, [...objects.layers], new AbortController().signal);
    assert.ok(merged.objectCount > ids.length);
    await merged.discard();
    assert.deepEqual(await filesBelow(join(database.directory, 'incoming')), []);
    await database.close();
  });

  test('is recorded in the manifest, so that a restart fetches nothing', async () => {
    const { layers, gets } = countedLayers();
    const options = { layers, packsMax: 4, directory: join(folder.path, 'restarted') };
    const database = await testDatabase(options);
    const repository = testRepository(join(folder.path, 'remembered'));
    const { objects, ids } = await pushes(database, repository, 6, database.newObjects());
    await assertAllThere(database, objects, ids);
    await database.database.settled();
    await database.close();
    const before = gets();
    const restarted = await testDatabase(options);
    await assertAllThere(restarted, objects, ids);
    if (process.platform === 'linux') assert.equal(gets(), before);
    await restarted.close();
  });

  test('that fails leaves no folder behind, and is tried again', async () => {
    const parent = join(folder.path, 'failing');
    const paths = { repositories: parent, incoming: join(parent, 'incoming'), trash: join(parent, 'trash') };
    await mkdir(parent, { recursive: true });
    const warnings: unknown[] = [];
    const log = { info: assert.fail, warn: (fields: object) => warnings.push(fields), error: assert.fail };
    const entries = await openCacheEntries({
      paths,
      cacheBytesMax: 2 ** 30,
      heldMemory: scratchMemory(),
      log,
      onBegun: async () => undefined,
    });
    const entry = entries.add(await makeCacheFolder(parent, uuid<RepositoryId>(randomUUID()), 0), true);
    entry.keepOpen('pack', new Promise(() => undefined));
    let tried = 0;
    const merge = async (from: CacheFolder) => {
      tried += 1;
      if (tried === 1) throw new Error('killed');
      const merged = await makeCacheFolder(parent, from.repository, from.shrinkEpoch);
      if (tried === 3) return merged;
      // The second attempt fails as it copies what arrived in between.
      const arrived = presentLayer();
      for (const extension of ['pack', 'idx'] as const) await writeFile(packPath(from, arrived.pack, extension), '');
      from.present.set(arrived.id, arrived);
      await rm(join(merged.path, 'objects'), { recursive: true });
      return merged;
    };
    const background = new BackgroundWork();
    const merges = new FolderMerges({ entries, merge, packsMax: 1, retryAfterMs: 100, background, log });
    for (const expected of [1, 2]) {
      for (let opening = 0; opening < 3; opening += 1) merges.mergeIfNeeded(entry);
      await merges.settled();
      merges.mergeIfNeeded(entry);
      await merges.settled();
      assert.equal(tried, expected, 'not at every opening');
      await entries.disk.settled();
      assert.equal((await readdir(join(parent, entry.folder.repository))).length, 1);
      await sleep(150);
    }
    merges.mergeIfNeeded(entry);
    await merges.settled();
    assert.deepEqual([tried, warnings.length, entry.isRetired], [3, 2, true]);
  });

  test('that a kill cut short leaves one folder after the next start, the one with all layers', async () => {
    const directory = join(folder.path, 'killed');
    const layers = createMemoryLayerStore();
    const options = { layers, directory };
    const database = await testDatabase(options);
    const repository = testRepository(join(folder.path, 'cut'));
    const { objects, ids } = await pushes(database, repository, 3, database.newObjects());
    await assertAllThere(database, objects, ids);
    await database.database.settled();
    await database.close();
    const parent = join(directory, 'repositories');
    for (const extra of [0, 1, 2]) {
      const begun = await makeCacheFolder(parent, objects.repository, objects.shrinkEpoch);
      await writeFile(join(begun.path, 'objects', 'pack', `tmp_pack_${extra}`), randomBytes(1_000));
    }
    const restarted = await testDatabase(options);
    await assertAllThere(restarted, objects, ids);
    await restarted.database.settled();
    assert.equal((await readdir(join(parent, objects.repository))).length, 1);
    await assertAllThere(restarted, objects, ids);
    await restarted.close();
  });

  test('chooses every pack except those that are far larger than all smaller ones together', () => {
    const layers = (sizes: readonly number[]) =>
      sizes.map((packBytes, index) => ({
        id: `${index}` as LayerId,
        sha256: '',
        pack: `${packBytes}-${index}`,
        packBytes,
        idxBytes: 0,
      }));
    const chosen = (sizes: readonly number[]) =>
      [...choosePacks(layers(sizes))].map((name) => Number(name.split('-')[0]));
    assert.deepEqual(chosen([1_000_000, 10, 12, 30, 60]), [10, 12, 30, 60]);
    // A gap in the sizes of the small packs does not leave the many larger ones unmerged.
    const many = [70, 70, 900, 900, 900, 900, 2_000, 4_000];
    assert.deepEqual(chosen([...many, 100_000]), many);
    assert.deepEqual(chosen([10, 300, 1_000]), []);
    assert.deepEqual(chosen([400 * 2 ** 20, 400 * 2 ** 20, 7, 8]), [7, 8]);
    assert.deepEqual(chosen([5]), []);
    assert.deepEqual(chosen([]), []);
  });
});

function presentLayer(): PresentLayer {
  return { id: 'a' as LayerId, sha256: '', pack: 'none', packBytes: 0, idxBytes: 0 };
}

/** A repository of enough objects that a bitmap is worth its time. */
function largeRepository(name: string): TestRepository {
  const repository = testRepository(join(folder.path, name));
  const stream: string[] = [];
  for (let index = 1; index <= 900; index += 1) {
    stream.push(`commit refs/heads/main\nmark :${index}\ncommitter A <a@example.org> ${1_600_000_000 + index} +0000\n`);
    stream.push(
      `data 2\nx\n${index === 1 ? '' : `from :${index - 1}\n`}M 100644 inline f${index % 50}\ndata 8\n${String(index).padStart(8)}\n\n`,
    );
  }
  repository.git(['fast-import', '--quiet'], { input: stream.join('') });
  return repository;
}

/** Clones `main`, and returns the number of objects received. */
async function clone(database: TestDatabase, repository: TestRepository, objects: CommittedObjects): Promise<number> {
  const tip = objectId(repository.line(['rev-parse', 'main']));
  const view: RefsView = {
    key: tip,
    head: 'refs/heads/main',
    runs: [[{ name: 'refs/heads/main', id: tip, peeled: null }]],
  };
  const want = `0032want ${tip}\n`;
  const request = once(Buffer.from(`0011command=fetch0001${want}0009done\n0000`));
  const reader = await database.database.open(objects);
  const signal = new AbortController().signal;
  const bytes = Buffer.concat(
    await Array.fromAsync(reader.uploadPack({ view, protocol: 2, request, answerKey: null, signal })),
  );
  reader.close();
  await database.database.settled();
  return Number(/Total (\d+)/.exec(bytes.toString('latin1'))?.[1]);
}

async function bitmapsOf(database: TestDatabase): Promise<number> {
  const names = await filesBelow(join(database.directory, 'repositories'));
  // Each view has links to the same files.
  return names.filter((name) => name.endsWith('.bitmap') && !name.includes('/views/')).length;
}

/** Pushes one more commit of three objects to `main`. */
function pushOne(database: TestDatabase, repository: TestRepository, objects: CommittedObjects) {
  const commit = repository.commit({ after: `${objects.shrinkEpoch}` });
  return database.push(objects, repository.pack([commit, `^${commit}~1`]));
}

/** Replaces all layers by one, as a compaction does. One that drops says since when nothing was. */
async function compact(
  { database, layers }: TestDatabase,
  objects: CommittedObjects,
  drops = false,
): Promise<CommittedObjects> {
  const before = [...objects.layers];
  const merged = await database.merge(objects, before, new AbortController().signal);
  const content = await merged.layer({ format: 1 });
  const id = uuid<LayerId>(randomUUID());
  const key = layerKey(`repositories/${objects.repository}/layers/${id}.tar`);
  await layers.put(key, content.body(), content.sizeBytes);
  const layer = { id, key, sizeBytes: content.sizeBytes, sha256: content.sha256(), pack: merged.pack };
  const shrinkEpoch = objects.shrinkEpoch + 1;
  const after = { ...objects, shrinkEpoch, layers: [layer], ...(drops ? { keptSinceEpoch: shrinkEpoch } : {}) };
  await merged.install(after, layer);
  return after;
}

describe('bitmaps', () => {
  test('are made after the first clone of a large repository, and the next clones are the same', async () => {
    const repository = largeRepository('large');
    const database = await testDatabase({ packsMax: 3 });
    let objects = await database.push(database.newObjects(), repository.pack(['main']));
    const count = Number(repository.line(['rev-list', '--objects', '--count', 'main']));
    assert.equal(await clone(database, repository, objects), count);
    assert.equal(await bitmapsOf(database), 1);
    assert.equal(await clone(database, repository, objects), count);
    for (let index = 0; index < 4; index += 1) {
      const commit = repository.commit({ after: `${index}` });
      objects = await database.push(
        objects,
        repository.pack([commit, `${commit}~1`].map((id, place) => (place === 1 ? `^${id}` : id))),
      );
      assert.equal(await clone(database, repository, objects), count + 3 * (index + 1));
    }
    assert.equal(await bitmapsOf(database), 1, 'the merged folder has one too, and the old one is gone');
    assert.deepEqual(database.warnings, []);
    await database.close();
  });

  test('of what was fetched are there when a compaction has replaced the layers', async () => {
    const repository = largeRepository('compacted');
    const database = await testDatabase();
    let objects = await database.push(database.newObjects(), repository.pack(['main']));
    objects = await pushOne(database, repository, objects);
    const count = await clone(database, repository, objects);
    assert.equal(await bitmapsOf(database), 1);
    objects = await compact(database, objects);
    assert.equal(await bitmapsOf(database), 2, 'before anybody fetches what was compacted');
    assert.equal(await clone(database, repository, objects), count);
    assert.equal(await bitmapsOf(database), 1, 'the older folder is gone');
    objects = await compact(database, await pushOne(database, repository, objects));
    assert.equal(await bitmapsOf(database), 2);
    objects = await compact(database, await pushOne(database, repository, objects));
    await database.database.settled();
    assert.equal(await bitmapsOf(database), 1, 'that of the folder before: nobody has fetched from it');
    assert.equal(await clone(database, repository, objects), count + 6);
    assert.deepEqual(database.warnings, []);
    await database.close();
  });

  test('of what was fetched are left to the next fetch when a compaction has dropped objects', async () => {
    const repository = largeRepository('dropped');
    const database = await testDatabase();
    let objects = await database.push(database.newObjects(), repository.pack(['main']));
    objects = await pushOne(database, repository, objects);
    const count = await clone(database, repository, objects);
    objects = await compact(database, objects, true);
    assert.equal(await bitmapsOf(database), 1, 'the tips of that fetch may be gone');
    assert.equal(await clone(database, repository, objects), count);
    assert.deepEqual(database.warnings, []);
    await database.close();
  });
});
