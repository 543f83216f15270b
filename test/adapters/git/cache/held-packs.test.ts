/** Small packs that a cached repository has in memory until git needs their files. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, test, vi } from 'vitest';
import { createDiskSpace } from '../../../../adapters/git/cache/disk-space.ts';
import { HeldMemory, HeldPacks, scratchMemory } from '../../../../adapters/git/cache/held-packs.ts';
import type { PackBytes } from '../../../../adapters/git/packs/joined-pack.ts';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import type { CommittedObjects } from '../../../../core/ports/object-database.ts';
import { filesBelow } from '../../../support/files-below.ts';
import { runGit, temporaryFolder, testRepository } from '../../../support/git.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { eventually } from '../../../support/processes.ts';

const folder = temporaryFolder('held-packs');
afterAll(() => folder.remove());
const repository = testRepository(join(folder.path, 'repository'));
const commits = ['first', 'second', 'third', 'fourth'].map((text) => repository.commit({ text: `${text}\n` }));

async function pushAll(database: TestDatabase, first = database.newObjects()): Promise<CommittedObjects> {
  let objects = first;
  for (const [at, commit] of commits.entries()) {
    const before = commits.slice(0, at).map((id) => `^${id}`);
    objects = await database.push(objects, repository.pack([commit, ...before], { thin: true }));
  }
  return objects;
}

async function packFiles({ directory }: TestDatabase): Promise<readonly string[]> {
  return (await filesBelow(directory)).filter((name) => /\.(?:pack|idx|unfinished)/.test(name));
}

function heldBytes({ database }: TestDatabase): number {
  return database.heldBytes();
}

/** Reads the commits in process, by their bytes. */
async function readInProcess({ database }: TestDatabase, objects: CommittedObjects): Promise<void> {
  const reader = await database.open(objects);
  const read = await reader.commits(commits);
  assert.deepEqual(
    read.map((commit) => commit?.id),
    commits,
  );
  reader.close();
}

/** git walks from the last commit to the first. */
async function countByGit({ database }: TestDatabase, objects: CommittedObjects): Promise<number> {
  const reader = await database.open(objects);
  try {
    return await reader.count(commits.at(-1) as ObjectId);
  } finally {
    reader.close();
  }
}

describe('A small pack', () => {
  test('comes onto the disk when git needs it, and is read in process before and after', async () => {
    const database = await testDatabase();
    const objects = await pushAll(database);
    assert.deepEqual(await packFiles(database), []);
    assert.ok(heldBytes(database) > 4 * 4_096);
    await readInProcess(database, objects);
    assert.deepEqual(await packFiles(database), []);
    assert.deepEqual(await Promise.all([1, 2, 3].map(() => countByGit(database, objects))), [4, 4, 4]);
    const written = await packFiles(database);
    assert.equal(written.length, 8);
    for (const name of written) if (name.endsWith('.idx')) runGit(['verify-pack', join(database.directory, name)]);
    assert.equal(heldBytes(database), 0);
    await readInProcess(database, objects);
    assert.deepEqual(database.warnings, []);
    await database.close();
  });

  test('is never written where a compaction joins it before', async () => {
    const layers = createMemoryLayerStore();
    const get = vi.spyOn(layers, 'get');
    const database = await testDatabase({ layers });
    const objects = await pushAll(database);
    const merged = await database.database.merge(objects, [...objects.layers], new AbortController().signal);
    const names = (await packFiles(database)).filter((name) => name.endsWith('.pack'));
    assert.equal(names.length, 1, 'the joined pack');
    assert.match(names[0] ?? '', new RegExp(merged.pack));
    await merged.discard();
    assert.deepEqual([await packFiles(database), get.mock.calls.length], [[], 0]);
    await database.close();
  });

  test('is in the folder of a later shrink epoch too, and goes with the last of them', async () => {
    const database = await testDatabase();
    const objects = await pushAll(database);
    const held = heldBytes(database);
    const later = { ...objects, shrinkEpoch: 1 };
    await readInProcess(database, later);
    await database.database.settled();
    assert.equal(heldBytes(database), held);
    assert.equal(await countByGit(database, later), 4);
    await pushAll(database);
    assert.ok(heldBytes(database) > 0);
    for (const each of database.database.cached()) await database.database.drop(each);
    await database.database.settled();
    assert.equal(heldBytes(database), 0);
    await database.close();
  });

  test('comes onto the disk as the process ends, so that the next one fetches nothing', async () => {
    const layers = createMemoryLayerStore();
    const directory = join(folder.path, 'ended');
    const database = await testDatabase({ layers, directory });
    const objects = await pushAll(database);
    await database.close();
    const get = vi.spyOn(layers, 'get');
    const next = await testDatabase({ layers, directory });
    await readInProcess(next, objects);
    if (process.platform === 'linux') assert.equal(get.mock.calls.length, 0);
    await next.close();
  });

  test('comes onto the disk when no other one has come for half a minute', async (context) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    context.onTestFinished(() => void vi.useRealTimers());
    const database = await testDatabase();
    const objects = await pushAll(database);
    vi.advanceTimersByTime(29_000);
    await pushAll(database, { ...database.newObjects(), repository: objects.repository, shrinkEpoch: 1 });
    vi.advanceTimersByTime(29_000);
    assert.ok(heldBytes(database) > 0);
    vi.advanceTimersByTime(31_000);
    vi.useRealTimers();
    await eventually('all are written', async () => heldBytes(database) === 0);
    await database.close();
  });

  test('comes onto the disk immediately where the memory for them is full', async () => {
    const database = await testDatabase({ heldBytesMax: 8_000 });
    const objects = await pushAll(database);
    assert.ok(heldBytes(database) > 4_096);
    assert.ok(heldBytes(database) <= 8_000);
    assert.equal((await packFiles(database)).length, 6, 'all but the first');
    await readInProcess(database, objects);
    assert.equal(await countByGit(database, objects), 4);
    await database.close();
  });

  test('is fetched from the layer store where its folder was deleted before it was written', async () => {
    const layers = createMemoryLayerStore();
    const get = vi.spyOn(layers, 'get');
    const database = await testDatabase({ layers });
    const objects = await pushAll(database);
    await rm(join(database.directory, 'repositories'), { recursive: true });
    await mkdir(join(database.directory, 'repositories'));
    assert.equal(await countByGit(database, objects), 4);
    assert.equal(get.mock.calls.length, 4);
    await database.close();
  });
});

describe('Packs in memory', () => {
  const packOf = (): PackBytes => ({ pack: randomBytes(1_000), idx: randomBytes(500) });

  test('stay there where they cannot be written, and are written when they can', async () => {
    const path = join(folder.path, 'missing');
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const pathOf = (pack: string) => (pack === 'a' ? join(folder.path, 'a') : join(path, pack));
    const held = new HeldPacks<string>({ memory: scratchMemory(), pathOf });
    for (const name of names) held.add(name, packOf(), `layer of ${name}`);
    held.add('a', packOf(), 'another layer of a');
    await assert.rejects(held.write(), { code: 'object-database-unavailable', message: /ENOENT/ });
    assert.equal(held.count, 5, 'all but the first, which is written');
    await mkdir(path);
    const [written, again] = await Promise.all([held.write(), held.write()]);
    assert.deepEqual(
      [...written, ...again].toSorted(),
      ['a', 'b', 'c', 'd', 'e', 'f']
        .map((name) => `layer of ${name}`)
        .concat('another layer of a')
        .toSorted(),
    );
    assert.deepEqual([held.count, held.memory.bytes, held.get('a')], [0, 0, null]);
    assert.equal((await filesBelow(path)).length, 10);
  });

  test('keep nothing of the memory that they were cut from', () => {
    const held = new HeldPacks<string>({ memory: scratchMemory(), pathOf: (pack) => pack });
    const request = randomBytes(60_000);
    held.add('a', { pack: request.subarray(100, 200), idx: request.subarray(300, 350) }, 'layer');
    assert.equal(held.get('a')?.pack.buffer.byteLength, 100);
    assert.equal(held.get('a')?.idx.buffer.byteLength, 50);
  });

  test('free space on a full disk: first what is kept of answers, then half of the repositories', async () => {
    const freed: string[] = [];
    const full = Object.assign(new Error('full'), { code: 'ENOSPC' });
    const withDiskSpace = createDiskSpace({
      entries: () => ({
        sizeBytes: 1_000,
        evict: (bytesMax: number) => freed.push(`down to ${bytesMax}`),
        disk: { settled: async () => void freed.push('removed') },
      }),
      freeDisk: async () => void freed.push('answers'),
    });
    let fullTimes = 2;
    const memory = new HeldMemory({
      bytesMax: 10_000,
      withDiskSpace: (bytes, work) =>
        withDiskSpace(bytes, async () => ((fullTimes -= 1) >= 0 ? Promise.reject(full) : work())),
      onFault: (error) => assert.fail(String(error)),
    });
    const path = join(folder.path, 'full');
    await mkdir(path);
    const held = new HeldPacks<string>({ memory, pathOf: (pack) => join(path, pack) });
    held.add('a', packOf(), 'layer');
    assert.deepEqual(await held.write(), ['layer']);
    assert.deepEqual(freed, ['answers', 'down to 0', 'removed']);
    assert.equal(memory.fits(packOf()), true);
    held.add('b', packOf(), 'layer');
    assert.equal(memory.fits(packOf()), false);
  });
});
