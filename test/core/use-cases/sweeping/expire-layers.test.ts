/** The layers that a compaction replaced leave storage after the retention, and not before. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'vitest';
import { streamName } from '../../../../core/kernel/envelope.ts';
import { REPLACED_LAYERS_KEPT_MS_MIN } from '../../../../core/kernel/limits.ts';
import { createPastEntities } from '../../../../core/runtime/past-entities.ts';
import { compactLayers } from '../../../../core/use-cases/compacting/compact-layers.ts';
import { committedObjects } from '../../../../core/use-cases/reading/committed-objects.ts';
import { expireLayers } from '../../../../core/use-cases/sweeping/expire-layers.ts';
import { startGitReading } from '../../../support/git-reading.ts';
import { layersIn } from '../../../support/layers-in.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { createMemorySnapshots } from '../../../support/memory/snapshots.ts';
import { testDatabase } from '../../../support/object-database.ts';

const NEVER = new AbortController().signal;
const RETENTION_MS = 30 * 24 * 60 * 60_000;

/** A repository of one large layer and five small ones that were merged. */
async function compacted(context: TestContext, retentionMs = RETENTION_MS) {
  const reading = await startGitReading();
  context.onTestFinished(() => reading.close());
  const { node, database, account, git } = reading;
  const push = async (bytes: number) =>
    reading.push({ 'refs/heads/main': git.commit({ [`file-${bytes}`]: randomBytes(bytes) }) });
  await push(200_000);
  for (let size = 300; size < 305; size += 1) await push(size);
  const { id } = await reading.current();
  const compacting = {
    ...node,
    layers: layersIn(database.layers),
    objects: database.database,
    failpoint: async () => undefined,
  };
  const compact = () => compactLayers(compacting, { account, repository: id }, NEVER);
  assert.equal(await compact(), 'compacted');
  const removed: string[] = [];
  const expiry = {
    ...node,
    marks: createMemoryPolicyMarks(),
    layers: layersIn({
      ...database.layers,
      delete: async (key) => {
        await database.layers.delete(key);
        removed.push(key);
      },
    }),
    past: createPastEntities({
      ...node,
      complete: async (event) => event,
      snapshots: createMemorySnapshots(),
      onFault: () => undefined,
    }),
    log: keepLog(),
    retentionMs,
    beforeRemoval: async () => undefined,
  };
  const types = async () => {
    const stream = streamName('repository', id);
    return (await node.events.readStream(stream, { direction: 'forwards', limit: 1_000 })).map(({ type }) => type);
  };
  const stored = async () => (await Array.fromAsync(database.layers.list(''))).length;
  return { reading, push, compact, expiry, removed, types, stored, id };
}

describe('Layers that a compaction replaced', () => {
  test('stay for the retention, then leave with one event, and what they held stays readable', async (context) => {
    const { reading, expiry, removed, types, stored } = await compacted(context);
    reading.node.clock.advance(RETENTION_MS - 1);
    await expireLayers(expiry, NEVER);
    assert.deepEqual([removed, await stored()], [[], 7]);
    reading.node.clock.advance(1);
    await expireLayers(expiry, NEVER);
    assert.deepEqual([removed.length, await stored()], [5, 2]);
    assert.equal((await types()).at(-1), 'LayersExpired');
    const elsewhere = await testDatabase({ layers: reading.database.layers });
    context.onTestFinished(() => elsewhere.close());
    const repository = await reading.current();
    const { entity } = repository;
    const reader = await elsewhere.database.open(committedObjects(repository, entity));
    const [tip] = [...entity.state.refs.entries()].map(([, ref]) => ref.id);
    const walked = await Array.fromAsync(reader.walk({ include: [tip ?? assert.fail()], exclude: [] }));
    assert.equal(walked.length, 6);
    reader.close();
  });

  test('stay an hour without any retention, since requests under way may read them', async (context) => {
    const { reading, expiry, removed } = await compacted(context, 0);
    reading.node.clock.advance(REPLACED_LAYERS_KEPT_MS_MIN - 1);
    await expireLayers(expiry, NEVER);
    assert.deepEqual(removed, []);
    reading.node.clock.advance(1);
    await expireLayers(expiry, NEVER);
    assert.equal(removed.length, 5);
  });

  test('are in the log once, though the process died before it had removed them all', async (context) => {
    const { reading, expiry, removed, types, stored } = await compacted(context);
    reading.node.clock.advance(RETENTION_MS);
    const dying = {
      ...expiry,
      layers: layersIn({
        ...reading.database.layers,
        delete: async (key) => {
          if (removed.length === 2) throw new Error('killed');
          await expiry.layers.platform.delete(key);
        },
      }),
    };
    await assert.rejects(expireLayers(dying, NEVER), /killed/);
    await expireLayers(expiry, NEVER);
    assert.equal(await stored(), 2);
    assert.equal((await types()).filter((type) => type === 'LayersExpired').length, 1);
  });

  test('of several compactions leave in their order', async (context) => {
    const { reading, push, compact, expiry, stored, types } = await compacted(context);
    reading.node.clock.advance(1_000);
    for (let size = 400; size < 404; size += 1) await push(size);
    assert.equal(await compact(), 'compacted');
    reading.node.clock.advance(RETENTION_MS - 1_000);
    await expireLayers(expiry, NEVER);
    assert.equal(await stored(), 12 - 5);
    reading.node.clock.advance(1_000);
    await expireLayers(expiry, NEVER);
    assert.equal(await stored(), 2);
    assert.equal((await types()).filter((type) => type === 'LayersExpired').length, 2);
  });
});
