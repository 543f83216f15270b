/** The node's cache of layers: filled once, checked and evicted; anybody may delete it at any time. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createGitObjectDatabase } from '../../../../adapters/git/object-database.ts';
import { type ObjectId, type RepositoryId, type Uuid, uuid } from '../../../../core/kernel/ids.ts';
import type { LayerStore } from '../../../../core/ports/layer-store.ts';
import {
  type CommittedObjects,
  ObjectDatabaseError,
  type UploadPackOptions,
} from '../../../../core/ports/object-database.ts';
import type { Layer, LayerKey } from '../../../../core/repository/layer.ts';
import { filesBelow } from '../../../support/files-below.ts';
import { temporaryFolder, testRepository } from '../../../support/git.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { once, storeLayer, type TestDatabase, testDatabase, withLayer } from '../../../support/object-database.ts';
import { eventually } from '../../../support/processes.ts';
import { mountSmallDisk } from '../../../support/small-disk.ts';

const folder = temporaryFolder('cache');
const repository = testRepository(join(folder.path, 'repository'));
/** Three commits, each in its own layer, which is in the layer store and in no cache. */
let history: { readonly objects: CommittedObjects; readonly commits: readonly ObjectId[] };
const layers = countingStore();

beforeAll(async () => {
  const database = await testDatabase({ layers: layers.store });
  const commits = [0, 1, 2].map((index) => repository.commit({ [`${index}`]: randomBytes(20_000) }));
  let objects = database.newObjects();
  for (const [index, commit] of commits.entries()) {
    const pack = repository.pack(index === 0 ? [commit] : [commit, `^${commits[index - 1]}`]);
    objects = await database.push(objects, pack);
  }
  history = { objects, commits };
  await database.close();
});
afterAll(() => folder.remove());

describe('the cache, while it is filled,', () => {
  test('fetches each layer once, however many requests need it at the same time', () =>
    withDatabase(async (database) => {
      layers.gets.length = 0;
      await Promise.all(Array.from({ length: 10 }, () => readAll(database, history.objects)));
      assert.deepEqual([...layers.gets].sort(), [...history.objects.layers].map(({ key }) => key).sort());
    }));

  test('takes no slot of the platform, nor more than six at the same time, for a bucket that never answers', async () => {
    const directory = join(folder.path, 'beside-buckets');
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let waiting = 0;
    const silent: LayerStore = {
      ...layers.store,
      get: async (key) => {
        waiting += 1;
        await held;
        return layers.store.get(key);
      },
    };
    const database = await createGitObjectDatabase({
      ...{ directory, cacheBytesMax: 2 ** 30 },
      layers: {
        ...layersIn(layers.store),
        of: ({ storageBucketId: bucket }) => (bucket === null ? layers.store : silent),
      },
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    });
    const inBucket = (storageBucketId: Uuid) => ({
      ...history.objects,
      repository: uuid<RepositoryId>(randomUUID()),
      place: { ...history.objects.place, storageBucketId },
    });
    const buckets = Array.from({ length: 3 }, () => uuid(randomUUID()));
    const opening = buckets.flatMap((bucket) => [1, 2, 3].map(() => database.open(inBucket(bucket))));
    await eventually('the buckets are asked', () => waiting === 18);
    (await database.open(history.objects)).close();
    assert.equal(waiting, 18, 'six layers of each bucket');
    release();
    for (const reader of await Promise.all(opening)) reader.close();
    assert.equal(waiting, 27);
    await database.close();
  });

  test('fetches only new layers', () =>
    withDatabase(async (database) => {
      await readAll(database, firstLayers(1));
      layers.gets.length = 0;
      await readAll(database, history.objects);
      assert.equal(layers.gets.length, 2);
    }));

  test('refuses a layer that changed in the store, names it, serves nothing of it and leaves no file', () =>
    withDatabase(async (database) => {
      const [layer] = [...history.objects.layers].slice(1);
      for (const place of [600, 10_000, (layer?.sizeBytes ?? 0) - 1]) {
        layers.change(layer?.key, (bytes) => {
          bytes[place] = (bytes[place] ?? 0) ^ 1;
        });
        const failed = database.database.open(history.objects);
        await assert.rejects(failed, (error) => {
          assert.ok(error instanceof ObjectDatabaseError);
          assert.equal(error.code, 'layer-corrupt');
          assert.ok(error.message.includes(layer?.id ?? '?') && error.message.includes(layer?.key ?? '?'));
          return true;
        });
        const received = database.receive(history.objects, repository.pack([repository.commit({ x: 'y' })]));
        await assert.rejects(received, /is corrupt/);
        layers.change(layer?.key, null);
      }
      assert.deepEqual(await filesIn(join(database.directory, 'incoming'), /_|\./), []);
      await readAll(database, history.objects);
    }));

  test('refuses a layer that is cut short, too long or missing', () =>
    withDatabase(async (database) => {
      const [layer] = [...history.objects.layers];
      const rejects = (code: string) =>
        assert.rejects(database.database.open(history.objects), (error) => {
          return (
            error instanceof ObjectDatabaseError && error.code === code && error.message.includes(layer?.key ?? '?')
          );
        });
      layers.change(layer?.key, (bytes) => bytes.subarray(0, 5_000));
      await rejects('layer-corrupt');
      layers.change(layer?.key, (bytes) => Buffer.concat([bytes, Buffer.alloc(10)]));
      await rejects('layer-corrupt');
      layers.change(layer?.key, 'missing');
      await rejects('layer-missing');
      layers.change(layer?.key, null);
      await readAll(database, history.objects);
    }));

  test('checks no push against a layer that the log has lost since', () =>
    withDatabase(async (database) => {
      const push = async (commit: ObjectId, ...without: readonly string[]) => {
        const received = await database.receive(history.objects, repository.pack([commit, ...without]));
        return 'refused' in received ? received.refused : received;
      };
      const lost = repository.commit({ lost: 'soon' });
      const first = await push(lost, `^${history.commits[2]}`);
      if (typeof first === 'string') assert.fail(first);
      const layer = await storeLayer(layers.store, history.objects, first);
      await first.install(layer);
      await readAll(database, withLayer(history.objects, layer));
      database.database.doubt();
      assert.equal(await push(repository.commit({ later: 'yes' }), `^${lost}`), 'pack-not-connected');
    }));

  test('reads what was committed instead of a layer that the log has lost', () =>
    withDatabase(async (database) => {
      const commitLayer = async (name: string) => {
        const received = await database.receive(history.objects, repository.pack([repository.commit({ [name]: 'x' })]));
        if ('refused' in received) assert.fail(received.detail);
        const layer = await storeLayer(layers.store, history.objects, received);
        await received.discard();
        return withLayer(history.objects, layer);
      };
      const [lost, kept] = [await commitLayer('lost'), await commitLayer('kept')];
      await readAll(database, lost);
      await readAll(database, kept);
    }));

  test('does not fetch an installed layer, even if readers need it while it is installed', () =>
    withDatabase(async (database) => {
      const commit = repository.commit({ installed: 'now' });
      const received = await database.receive(history.objects, repository.pack([commit, `^${history.commits[2]}`]));
      if ('refused' in received) assert.fail(received.detail);
      const layer = await storeLayer(layers.store, history.objects, received);
      const objects = withLayer(history.objects, layer);
      layers.gets.length = 0;
      await Promise.all([received.install(layer), readAll(database, objects), readAll(database, objects)]);
      assert.deepEqual(layers.gets, []);
      assert.deepEqual(database.warnings, []);
    }));

  test('keeps one copy of a layer that was fetched before its own push installs it', () =>
    withDatabase(async (database) => {
      const commit = repository.commit({ fetched: 'first' });
      const received = await database.receive(history.objects, repository.pack([commit, `^${history.commits[2]}`]));
      if ('refused' in received) assert.fail(received.detail);
      const layer = await storeLayer(layers.store, history.objects, received);
      const objects = withLayer(history.objects, layer);
      await Promise.all([readAll(database, objects), received.install(layer)]);
      await readAll(database, objects);
      await eventually('the quarantine is empty', async () => {
        return (await filesIn(join(database.directory, 'incoming'), /\.(pack|idx|rev)$/)).length === 0;
      });
    }));
});

describe('the cache, of which any part may be lost,', () => {
  test('fetches everything again after its folder was deleted while it runs', () =>
    withDatabase(async (database) => {
      await readAll(database, history.objects);
      for (const path of ['repositories', '.']) {
        await rm(join(database.directory, path), { recursive: true });
        layers.gets.length = 0;
        await readAll(database, history.objects);
        assert.equal(layers.gets.length, 3);
      }
      const pack = repository.pack([repository.commit({ after: 'deletion' }, { parents: history.commits.slice(2) })]);
      await readAll(database, await database.push(history.objects, pack));
    }));

  test('is used again after a restart of the server, and emptied after a restart of the machine', async () => {
    const directory = join(folder.path, 'restarted');
    const run = async () => {
      const database = await testDatabase({ directory, layers: layers.store });
      layers.gets.length = 0;
      await readAll(database, history.objects);
      const fetched = layers.gets.length;
      await database.close();
      return fetched;
    };
    assert.equal(await run(), 3);
    const expected = process.platform === 'linux' ? 0 : 3;
    assert.equal(await run(), expected);
    await writeFile(join(directory, 'boot'), 'an earlier start of the machine');
    assert.equal(await run(), 3);
    assert.equal(await run(), expected);
  });

  test('fetches a pack again that was shortened or removed between two runs', async () => {
    const directory = join(folder.path, 'damaged');
    const damages = [(path: string) => truncate(path, 100), (path: string) => rm(path)];
    for (const damage of damages) {
      const first = await testDatabase({ directory, layers: layers.store });
      await readAll(first, history.objects);
      await first.close();
      const packs = await filesIn(directory, /\.pack$/);
      await damage(packs[0] ?? '');
      const second = await testDatabase({ directory, layers: layers.store });
      await readAll(second, history.objects);
      await second.close();
    }
  });

  test('fetches only the layer whose manifest line was cut short, and ignores strange files', async () => {
    const directory = join(folder.path, 'manifest');
    const first = await testDatabase({ directory, layers: layers.store });
    await readAll(first, history.objects);
    await first.close();
    const [manifest = ''] = await filesIn(directory, /layers\.jsonl$/);
    await truncate(manifest, (await stat(manifest)).size - 20);
    await writeFile(join(directory, 'repositories', 'stray'), '');
    await mkdir(join(directory, 'repositories', history.objects.repository, 'stray'));
    for (const expected of process.platform === 'linux' ? [1, 1, 0] : [3, 3, 3]) {
      const next = await testDatabase({ directory, layers: layers.store });
      layers.gets.length = 0;
      await readAll(next, history.objects);
      await next.close();
      assert.equal(layers.gets.length, expected);
    }
  });

  test('removes quarantines and half-fetched layers of an earlier run at start', async () => {
    const directory = join(folder.path, 'swept');
    for (const path of ['incoming/dead/pack', 'trash/dead']) await mkdir(join(directory, path), { recursive: true });
    await writeFile(join(directory, 'incoming/dead/pack/tmp_pack_x'), 'half');
    const database = await testDatabase({ directory });
    assert.deepEqual(await readdir(join(directory, 'incoming')), []);
    assert.deepEqual(await readdir(join(directory, 'trash')), []);
    await database.close();
  });
});

describe('eviction', () => {
  test('removes whole repositories, least recently used first, and none that is being read', async () => {
    const database = await testDatabase({ cacheBytesMax: 200_000 });
    try {
      // Too large to be held in memory.
      const packs = Array.from({ length: 4 }, (_, index) =>
        repository.commit({ e: randomBytes(80_000), [`${index}`]: '' }, { parents: [] }),
      );
      const all: CommittedObjects[] = [];
      for (const commit of packs) all.push(await database.push(database.newObjects(), repository.pack([commit])));
      const cached = async () => {
        const names = await filesBelow(join(database.directory, 'repositories'));
        return all.map(({ repository }) => names.some((name) => name.startsWith(repository) && name.endsWith('.pack')));
      };
      await eventually('two are left', async () => (await cached()).join() === 'false,false,true,true');
      const reader = await database.database.open(all[2] ?? database.newObjects());
      for (const objects of [all[0], all[1], all[3]]) await readAll(database, objects ?? database.newObjects());
      assert.equal((await cached())[2], true);
      assert.equal((await reader.lookup([packs[2] ?? history.commits[0] ?? assert.fail()]))[0]?.type, 'commit');
      reader.close();
      await readAll(database, all[0] ?? database.newObjects());
      await eventually(
        'the repository that was read is removed',
        async () => (await cached()).join() === 'true,false,false,true',
      );
    } finally {
      await database.close();
    }
  });

  test('removes a dropped repository when its last reader is closed', () =>
    withDatabase(async (database) => {
      const reader = await database.database.open(history.objects);
      await database.database.drop(history.objects.repository);
      assert.equal((await reader.lookup(history.commits))[0]?.type, 'commit');
      assert.equal((await filesIn(database.directory, /\.pack$/)).length, 3);
      reader.close();
      await eventually('its files are gone', async () => (await filesIn(database.directory, /\.pack$/)).length === 0);
      await readAll(database, history.objects);
    }));

  test('keeps a folder for each shrink epoch, which holds exactly the layers of that epoch', () =>
    withDatabase(async (database) => {
      const old = await database.database.open(history.objects);
      const shrunk = { ...firstLayers(1), shrinkEpoch: 1, revision: 7 };
      await readAll(database, shrunk, 1);
      assert.deepEqual(
        (await old.lookup(history.commits)).map((info) => info?.type),
        ['commit', 'commit', 'commit'],
      );
      old.close();
      await eventually(
        'the old folder is removed',
        async () => (await filesIn(database.directory, /\.pack$/)).length === 1,
      );
      const pack = repository.pack([history.commits[2] ?? '', `^${history.commits[1]}`]);
      const received = await database.receive(shrunk, pack);
      assert.equal('refused' in received && received.refused, 'pack-not-connected');
    }));
});

describe('a full disk', () => {
  test('refuses a push and leaves no file, until there is room', async (context) => {
    const disk = mountSmallDisk(1_500_000);
    if ('skip' in disk) return context.skip(disk.skip);
    const database = await testDatabase({ directory: join(disk.path, 'cache') });
    try {
      const large = repository.pack([repository.commit({ full: randomBytes(2_000_000) }, { parents: [] })]);
      const received = await database.receive(database.newObjects(), large);
      assert.deepEqual(received, { refused: 'disk-full', detail: 'the server has no room left' });
      assert.deepEqual(await filesIn(join(database.directory, 'incoming'), /_|\./), []);
      const small = repository.pack([repository.commit({ full: 'no' }, { parents: [] })]);
      await readAll(database, await database.push(database.newObjects(), small), null);
    } finally {
      await database.close();
      disk.remove();
    }
  });

  test('costs the kept answers before it costs a repository', async (context) => {
    const disk = mountSmallDisk(1_000_000);
    if ('skip' in disk) return context.skip(disk.skip);
    const database = await testDatabase({ layers: layers.store, directory: join(disk.path, 'cache') });
    try {
      await readAll(database, firstLayers(1));
      const tip = history.commits[0] ?? assert.fail();
      const reader = await database.database.open(firstLayers(1));
      await Array.fromAsync(reader.uploadPack(cloneOf(tip)));
      reader.close();
      const filler = join(disk.path, 'filler');
      await assert.rejects(writeFile(filler, randomBytes(1_000_000)), /ENOSPC/);
      // Some room, but not for a layer of 20 kB.
      await truncate(filler, (await stat(filler)).size - 8_192);
      await readAll(database, firstLayers(2));
      assert.deepEqual(await readdir(join(disk.path, 'cache', 'answers')), []);
    } finally {
      await database.close();
      disk.remove();
    }
  });

  test('makes the cache evict other repositories for the one that is needed', async (context) => {
    const disk = mountSmallDisk(1_000_000);
    if ('skip' in disk) return context.skip(disk.skip);
    const store = createMemoryLayerStore();
    const database = await testDatabase({ layers: store });
    const all: CommittedObjects[] = [];
    for (let index = 0; index < 4; index += 1) {
      const commit = repository.commit({ room: randomBytes(300_000) }, { parents: [] });
      all.push(await database.push(database.newObjects(), repository.pack([commit])));
    }
    await database.close();
    const tight = await testDatabase({ layers: store, directory: join(disk.path, 'cache') });
    try {
      for (const objects of [...all, ...all]) await readAll(tight, objects, null);
    } finally {
      await tight.close();
      disk.remove();
    }
  });
});

describe('a push whose client goes away', () => {
  test('leaves no file and no lease behind, whether its body fails or it is cancelled', () =>
    withDatabase(async (database) => {
      const pack = repository.pack([repository.commit({ gone: randomBytes(500_000) }, { parents: [] })]);
      const failure = new Error('connection reset');
      async function* failing() {
        yield* once(pack.subarray(0, 300_000));
        throw failure;
      }
      await assert.rejects(database.receive(history.objects, failing()), failure);
      const abort = new AbortController();
      async function* hanging() {
        yield* once(pack.subarray(0, 300_000));
        setTimeout(() => abort.abort(new Error('cancelled')), 20);
        await new Promise(() => {});
      }
      await assert.rejects(database.receive(history.objects, hanging(), { signal: abort.signal }), /cancelled/);
      await assert.rejects(database.receive(history.objects, pack, { signal: abort.signal }), /cancelled/);
      assert.deepEqual(await filesIn(join(database.directory, 'incoming'), /_|\./), []);
      await database.database.drop(history.objects.repository);
      await eventually('nothing holds the repository', async () => {
        return (await filesIn(database.directory, /\.pack$/)).length === 0;
      });
    }));
});

async function withDatabase(work: (database: TestDatabase) => Promise<void>): Promise<void> {
  const database = await testDatabase({ layers: layers.store });
  try {
    await work(database);
  } finally {
    await database.close();
  }
}

function firstLayers(count: number): CommittedObjects {
  return { ...history.objects, layers: [...history.objects.layers].slice(0, count) };
}

/** A clone of one branch, whose answer is kept. */
function cloneOf(tip: ObjectId): UploadPackOptions {
  const refs = [{ name: 'refs/heads/main', id: tip, peeled: null }];
  const view = { key: tip, head: 'refs/heads/main', runs: [refs] };
  const request = once(Buffer.from(`0011command=fetch0001${`0032want ${tip}\n`}0009done\n0000`));
  return { view, protocol: 2, request, answerKey: tip, signal: new AbortController().signal };
}

/** Opens the repository and checks that it has as many of the history's commits as layers. */
async function readAll(
  database: TestDatabase,
  objects: CommittedObjects,
  commits: number | null = Math.min(objects.layers.length, 3),
): Promise<void> {
  const reader = await database.database.open(objects);
  try {
    if (commits === null || objects.repository !== history.objects.repository) return;
    const found = await reader.commits(history.commits);
    assert.deepEqual(
      found.map((commit) => commit?.id ?? null),
      history.commits.map((id, index) => (index < commits ? id : null)),
    );
  } finally {
    reader.close();
  }
}

async function filesIn(directory: string, pattern: RegExp): Promise<readonly string[]> {
  const names = await filesBelow(directory);
  return names.filter((name) => pattern.test(name)).map((name) => join(directory, name));
}

/** A layer store that records which keys are read, and can return changed bytes. */
function countingStore() {
  const inner = createMemoryLayerStore();
  const gets: LayerKey[] = [];
  const changes = new Map<string, ((bytes: Buffer) => Buffer | void) | 'missing'>();
  const store: LayerStore = {
    ...inner,
    get: async (key, range) => {
      gets.push(key);
      const change = changes.get(key);
      if (change === undefined) return inner.get(key, range);
      if (change === 'missing') return inner.get(`${key}.not-there` as Layer['key']);
      const bytes = Buffer.concat(await Array.fromAsync(await inner.get(key)));
      return once(change(bytes) ?? bytes);
    },
  };
  const change = (key: LayerKey | undefined, how: ((bytes: Buffer) => Buffer | void) | 'missing' | null) => {
    if (how === null) changes.delete(key ?? '');
    else changes.set(key ?? '', how);
  };
  return { store, gets, change };
}
