/** Compactions of a repository of the real git, over a log in memory. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { LAYERS_MAX, PUSH_COMMIT_SPAN_MS } from '../../../../core/kernel/limits.ts';
import type { FailpointName } from '../../../../core/ports/failpoints.ts';
import { type CompactionContext, compactLayers } from '../../../../core/use-cases/compacting/compact-layers.ts';
import { committedObjects } from '../../../../core/use-cases/reading/committed-objects.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { testDatabase } from '../../../support/object-database.ts';

const NEVER = new AbortController().signal;

/** A repository with one large layer and `small` small ones. */
async function repositoryOf(context: TestContext, small: number) {
  const reading = await startGitReading();
  context.onTestFinished(() => reading.close());
  const ids: ObjectId[] = [];
  await push(reading, ids, { large: randomBytes(200_000) });
  for (let index = 0; index < small; index += 1) await push(reading, ids, { [`file-${index}`]: randomBytes(300) });
  return { reading, ids, of: { account: reading.account, repository: (await reading.current()).id } };
}

async function push(reading: GitReading, ids: ObjectId[], files: Readonly<Record<string, Buffer>>): Promise<void> {
  const commit = reading.git.commit(files);
  ids.push(commit);
  await reading.push({ 'refs/heads/main': commit });
}

function contextOf(
  { node, database }: GitReading,
  onFailpoint: (point: FailpointName) => Promise<void> = async () => undefined,
): CompactionContext {
  return { ...node, layers: layersIn(database.layers), objects: database.database, failpoint: onFailpoint };
}

/** The layers in the store, whether an event names them or not. */
async function storedLayers({ database }: GitReading): Promise<number> {
  return (await Array.fromAsync(database.layers.list('repositories/'))).length;
}

async function layersOf(reading: GitReading): Promise<number> {
  return (await reading.current()).entity.state.layers.length;
}

async function assertReadable(reading: GitReading, ids: readonly ObjectId[], database = reading.database) {
  const repository = await reading.current();
  const reader = await database.database.open(committedObjects(repository, repository.entity));
  const found = await reader.lookup(ids);
  assert.deepEqual(
    found.map((info) => info?.id),
    ids,
  );
  assert.equal(await reader.isAncestor(ids[0] ?? assert.fail(), ids.at(-1) ?? assert.fail()), true);
  reader.close();
}

describe('A compaction', () => {
  test('leaves few layers with the same objects, on this node and on one with an empty cache', async (context) => {
    const { reading, ids, of } = await repositoryOf(context, 12);
    assert.equal(await layersOf(reading), 13);
    assert.equal(await compactLayers(contextOf(reading), of, NEVER), 'compacted');
    assert.equal(await layersOf(reading), 2);
    await assertReadable(reading, ids);
    const elsewhere = await testDatabase({ layers: reading.database.layers });
    context.onTestFinished(() => elsewhere.close());
    await assertReadable(reading, ids, elsewhere);
    assert.equal(await compactLayers(contextOf(reading), of, NEVER), 'nothing');
    assert.deepEqual(reading.database.warnings, []);
  });

  test('keeps objects that no ref reaches, and layers that it replaced stay in storage', async (context) => {
    const { reading, ids, of } = await repositoryOf(context, 4);
    const left = reading.git.commit({ left: randomBytes(300) });
    await reading.push({ 'refs/heads/left': left });
    await reading.push({ 'refs/heads/left': null });
    await compactLayers(contextOf(reading), of, NEVER);
    await assertReadable(reading, [...ids, left]);
    assert.equal((await reading.current()).entity.state.clean, false);
    const stored = await Array.fromAsync(reading.database.layers.list(''));
    assert.equal(stored.length, 7, 'six that pushes stored, and the merged one');
  });

  test('fetches nothing again that the node has: a later push and a read need no layer of the store', async (context) => {
    const { reading, ids, of } = await repositoryOf(context, 6);
    await compactLayers(contextOf(reading), of, NEVER);
    const fetched: string[] = [];
    const { layers } = reading.database;
    const get = layers.get.bind(layers);
    Object.assign(layers, {
      get: (...given: Parameters<typeof get>) => {
        fetched.push(given[0]);
        return get(...given);
      },
    });
    await push(reading, ids, { again: randomBytes(300) });
    await assertReadable(reading, ids);
    assert.deepEqual(fetched, []);
  });

  test('hands the store a body that it may read again, as a push does', async (context) => {
    const { reading, ids, of } = await repositoryOf(context, 4);
    const { layers } = reading.database;
    const put = layers.put.bind(layers);
    let puts = 0;
    Object.assign(layers, {
      put: async (...[key, body, sizeBytes]: Parameters<typeof put>) => {
        await Array.fromAsync(body);
        puts += 1;
        return put(key, body, sizeBytes);
      },
    });
    await push(reading, ids, { again: randomBytes(300) });
    assert.equal(await compactLayers(contextOf(reading), of, NEVER), 'compacted');
    assert.equal(puts, 2);
    const elsewhere = await testDatabase({ layers });
    context.onTestFinished(() => elsewhere.close());
    await assertReadable(reading, ids, elsewhere);
  });

  test('commits beside a push that was committed in between, and loses none of it', async (context) => {
    const { reading, ids, of } = await repositoryOf(context, 5);
    const racing = contextOf(reading, async (point) => {
      if (point === 'compaction-layer-stored') await push(reading, ids, { racing: randomBytes(300) });
    });
    assert.equal(await compactLayers(racing, of, NEVER), 'compacted');
    assert.equal(await layersOf(reading), 3);
    await assertReadable(reading, ids);
  });

  test('goes on immediately where enough layers came in between for a compaction without delay', async (context) => {
    const { reading, ids, of } = await repositoryOf(context, 2);
    const racing = contextOf(reading, async (point) => {
      if (point !== 'compaction-layer-stored') return;
      for (let more = 0; more < LAYERS_MAX - 2; more += 1) await push(reading, ids, { [`${more}`]: randomBytes(10) });
    });
    assert.equal(await compactLayers(racing, of, NEVER), 'partly');
    assert.equal(await layersOf(reading), LAYERS_MAX);
    assert.equal(await compactLayers(contextOf(reading), of, NEVER), 'compacted');
    await assertReadable(reading, ids);
  });

  test('commits nothing after another compaction of the same layers', async (context) => {
    const { reading, ids, of } = await repositoryOf(context, 5);
    const slower = contextOf(reading, async (point) => {
      if (point === 'compaction-layer-stored') await compactLayers(contextOf(reading), of, NEVER);
    });
    assert.equal(await compactLayers(slower, of, NEVER), 'lost');
    assert.equal(await layersOf(reading), 2);
    assert.equal(await storedLayers(reading), 7, 'those of six pushes, and that of the faster one');
    await assertReadable(reading, ids);
  });

  test('commits nothing when its layer is so old that the sweep may remove it', async (context) => {
    const { reading, of } = await repositoryOf(context, 5);
    const late = contextOf(reading, async (point) => {
      if (point === 'compaction-layer-stored') reading.node.clock.advance(PUSH_COMMIT_SPAN_MS + 1);
    });
    assert.equal(await compactLayers(late, of, NEVER), 'lost');
    assert.equal(await layersOf(reading), 6);
    assert.equal(await storedLayers(reading), 6);
  });

  test('that dies on the way leaves the repository as it was, and no file', async (context) => {
    const { reading, ids, of } = await repositoryOf(context, 5);
    const dying = contextOf(reading, async () => {
      throw new Error('killed');
    });
    await assert.rejects(compactLayers(dying, of, NEVER), /killed/);
    assert.equal(await layersOf(reading), 6);
    await assertReadable(reading, ids);
    await reading.database.database.settled();
    assert.deepEqual(await leftFiles(reading), []);
  });

  test('reports a layer that was damaged in storage, and replaces nothing', async (context) => {
    const { reading, of } = await repositoryOf(context, 5);
    const { layers } = reading.database;
    const elsewhere = await testDatabase({
      layers: {
        ...layers,
        get: async () =>
          (async function* () {
            yield new Uint8Array(2_000);
          })(),
      },
    });
    context.onTestFinished(() => elsewhere.close());
    const damaged = { ...contextOf(reading), objects: elsewhere.database };
    await assert.rejects(compactLayers(damaged, of, NEVER), { code: 'layer-corrupt' });
    assert.equal(await layersOf(reading), 6);
  });
});

/** Files below the folder of incoming packs. */
async function leftFiles({ database }: GitReading): Promise<readonly string[]> {
  const entries = await readdir(join(database.directory, 'incoming'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}
