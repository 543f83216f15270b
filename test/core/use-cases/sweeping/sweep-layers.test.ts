/** The sweep removes layers that no event names after a week, and no others. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { utimes } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { createFilesystemLayerStore } from '../../../../adapters/filesystem/layer-store.ts';
import { createS3LayerStore } from '../../../../adapters/s3/layer-store.ts';
import { streamName } from '../../../../core/kernel/envelope.ts';
import { type EventId, plusMs, type RepositoryId, type Timestamp, uuid } from '../../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import { ORPHANED_LAYER_SPAN_MS } from '../../../../core/kernel/limits.ts';
import { EventStoreError } from '../../../../core/ports/event-store.ts';
import type { LayerStore } from '../../../../core/ports/layer-store.ts';
import { layerKey } from '../../../../core/repository/layer.ts';
import { sweepLayers } from '../../../../core/use-cases/sweeping/sweep-layers.ts';
import { newAccount } from '../../../support/events.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { CAUSE } from '../../../support/node.ts';
import { needs } from '../../../support/optional-suites.ts';
import { tempDir } from '../../../support/temp-dir.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { startS3Server } from '../../../support/versitygw.ts';
import { watchLog } from '../../../support/watched-log.ts';

const NEVER = new AbortController().signal;

/** A store and a log that have nothing in common yet. The store has its own clock. */
function newSweep(storeOf?: (now: () => Timestamp) => LayerStore) {
  const [clock, storeClock] = [createTestClock(), createTestClock()];
  const events = watchLog(createMemoryEventStore());
  const layers = storeOf?.(storeClock.now) ?? createMemoryLayerStore(storeClock.now);
  const log = keepLog();
  const swept: string[] = [];
  const context = { events, layers, clock, log, onSwept: ({ key }: { key: string }) => swept.push(key) };
  const account = newAccount();
  const revisions = new Map<RepositoryId, number>();
  const append = async (repository: RepositoryId, type: string, data: JsonObject): Promise<void> => {
    const revision = revisions.get(repository);
    const event = { ...CAUSE, id: uuid<EventId>(randomUUID()), type, version: 1, accountId: account, isRecord: true };
    const result = await events.append({
      stream: streamName('repository', repository),
      expected: revision ?? 'none',
      events: [{ ...event, occurredAt: clock.now(), data }],
    });
    assert.equal(result.outcome, 'appended');
    revisions.set(repository, (revision ?? -1) + 1);
  };
  return {
    ...{ clock, storeClock, events, layers, log, swept, context },
    /** Advances the clocks of the node and of the store. */
    pass: (ms: number) => {
      clock.advance(ms);
      storeClock.advance(ms);
    },
    repository: () => uuid<RepositoryId>(randomUUID()),
    /** Stores a layer, and returns the form in which an event names it. */
    put: async (repository: RepositoryId, key = `repositories/${repository}/layers/${randomUUID()}.tar`) => {
      await layers.put(layerKey(key), oneByte(), 1);
      const id = path.basename(key, '.tar');
      return { id, key, size_bytes: 1, sha256: '0'.repeat(64), pack: '0'.repeat(40) };
    },
    push: (repository: RepositoryId, layer: JsonObject | null) =>
      append(repository, 'RefsUpdated', {
        ...{ push_id: randomUUID(), updates: [], parts: null, layer, push_options: [], refused: 0, received_bytes: 1 },
      }),
    append,
    keys: async () => (await Array.fromAsync(layers.list(''), ({ key }) => String(key))).sort(),
    sweep: (signal = NEVER) => sweepLayers(context, signal),
  };
}

async function* oneByte(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1);
}

describe('The sweep of orphaned layers', () => {
  test('removes a layer that no event names after seven days, and reports it', async () => {
    const s = newSweep();
    const repository = s.repository();
    const named = await s.put(repository);
    await s.push(repository, named);
    const orphan = await s.put(repository);
    s.pass(ORPHANED_LAYER_SPAN_MS);
    await s.sweep();
    assert.deepEqual(await s.keys(), [named.key, orphan.key].sort(), 'at the limit it stays');
    s.pass(1);
    await s.sweep();
    assert.deepEqual(await s.keys(), [named.key]);
    assert.deepEqual(s.swept, [orphan.key]);
    const [line, ...others] = s.log.lines;
    assert.deepEqual(others, []);
    assert.equal(line?.level, 'info');
    assert.partialDeepStrictEqual(line?.fields, { repository, layer: orphan.id, sizeBytes: 1 });
  });

  test('uses the earlier of two clocks, so neither a fast node nor a fast store makes a layer old', async () => {
    for (const fast of ['clock', 'storeClock'] as const) {
      const s = newSweep();
      const repository = s.repository();
      await s.push(repository, null);
      const orphan = await s.put(repository);
      s[fast].advance(30 * ORPHANED_LAYER_SPAN_MS);
      await s.sweep();
      assert.deepEqual(await s.keys(), [orphan.key], fast);
    }
  });

  test('keeps the layers of a deleted repository, because its events still name them', async () => {
    const s = newSweep();
    const repository = s.repository();
    const layer = await s.put(repository);
    await s.push(repository, layer);
    await s.append(repository, 'RepositoryClosed', {});
    const orphan = await s.put(repository);
    s.pass(2 * ORPHANED_LAYER_SPAN_MS);
    await s.sweep();
    assert.deepEqual(await s.keys(), [layer.key]);
    assert.deepEqual(s.swept, [orphan.key]);
  });

  test('keeps what an event of an unknown type names, by key or by id', async () => {
    const s = newSweep();
    const repository = s.repository();
    const [first, second] = [await s.put(repository), await s.put(repository)];
    await s.append(repository, 'LayersMerged', { into: { layers: [{ key: first.key }] } });
    await s.append(repository, 'LayersMoved', { ids: [second.id] });
    s.pass(2 * ORPHANED_LAYER_SPAN_MS);
    await s.sweep();
    assert.deepEqual(s.swept, []);
  });

  test('finds a name at the end of a long stream', async () => {
    const s = newSweep();
    const repository = s.repository();
    for (let n = 0; n < 250; n += 1) await s.push(repository, null);
    const layer = await s.put(repository);
    await s.push(repository, layer);
    s.pass(2 * ORPHANED_LAYER_SPAN_MS);
    await s.sweep();
    assert.deepEqual(s.swept, []);
  });

  test('keeps files that are not layers, and layers of repositories that this log does not know', async () => {
    const s = newSweep();
    const repository = s.repository();
    await s.push(repository, null);
    await s.put(repository, `repositories/${repository}/manifest/1.json`);
    await s.put(repository, `repositories/${repository}/layers/${randomUUID()}.tar.part`);
    await s.put(repository, `other/${repository}/layers/${randomUUID()}.tar`);
    await s.put(s.repository());
    const before = await s.keys();
    s.pass(2 * ORPHANED_LAYER_SPAN_MS);
    await s.sweep();
    assert.deepEqual(await s.keys(), before);
  });

  test('removes nothing of a repository whose stream cannot be read, and continues with the others', async () => {
    const s = newSweep();
    const [broken, sound] = [s.repository(), s.repository()];
    for (const repository of [broken, sound]) await s.push(repository, null);
    const kept = await s.put(broken);
    const orphan = await s.put(sound);
    s.events.on.read = (stream) => {
      if (stream === streamName('repository', broken)) throw new TypeError('This is no JSON');
    };
    s.pass(2 * ORPHANED_LAYER_SPAN_MS);
    await s.sweep();
    assert.deepEqual([await s.keys(), s.swept], [[kept.key], [orphan.key]]);
    assert.deepEqual(
      s.log.lines.map(({ level }) => level),
      ['error', 'info'],
    );
  });

  test('stops if the log fails midway, and removes nothing that it has not checked', async () => {
    const s = newSweep();
    const repository = s.repository();
    for (let n = 0; n < 150; n += 1) await s.push(repository, null);
    await s.put(repository);
    let reads = 0;
    s.events.on.read = () => {
      reads += 1;
      if (reads === 2) throw new EventStoreError('log-unavailable', 'PostgreSQL cannot be reached');
    };
    s.pass(2 * ORPHANED_LAYER_SPAN_MS);
    await assert.rejects(s.sweep(), { code: 'log-unavailable' });
    assert.deepEqual(s.swept, []);
  });

  test('stops early when the server stops', async () => {
    const s = newSweep();
    const repository = s.repository();
    await s.push(repository, null);
    await s.put(repository);
    const stopping = new AbortController();
    s.events.on.read = () => stopping.abort();
    s.pass(2 * ORPHANED_LAYER_SPAN_MS);
    await s.sweep(stopping.signal);
    assert.deepEqual(s.swept, []);
  });

  test('removes each orphan once, and nothing else, when several nodes sweep at the same time', async () => {
    const s = newSweep();
    const repositories = [s.repository(), s.repository(), s.repository()];
    const named: string[] = [];
    for (const repository of repositories) {
      const layer = await s.put(repository);
      named.push(layer.key);
      await s.push(repository, layer);
      for (let n = 0; n < 5; n += 1) await s.put(repository);
    }
    s.pass(2 * ORPHANED_LAYER_SPAN_MS);
    await Promise.all([s.sweep(), s.sweep(), s.sweep()]);
    assert.deepEqual(await s.keys(), named.sort());
  });

  test('works on real files, by the times of their file system', async (t) => {
    const directory = await tempDir(t);
    const files = await createFilesystemLayerStore({ directory });
    const s = newSweep(() => files);
    s.clock.set(await files.now());
    const repository = s.repository();
    const [named, young, orphan] = [await s.put(repository), await s.put(repository), await s.put(repository)];
    await s.push(repository, named);
    for (const { key } of [named, orphan]) {
      const stored = new Date(plusMs(await files.now(), -ORPHANED_LAYER_SPAN_MS - 60_000));
      await utimes(path.join(directory, key), stored, stored);
    }
    await s.sweep();
    assert.deepEqual(await s.keys(), [named.key, young.key].sort());
    assert.deepEqual(s.swept, [orphan.key]);
  });

  test('works on a bucket, by the times of its server', needs('versitygw'), async (t) => {
    const { url: endpointUrl, region, bucket, folder, accessKeyId, secretAccessKey } = await startS3Server(t);
    const credentials = { accessKeyId, secretAccessKey };
    const objects = createS3LayerStore({ endpointUrl, region, bucket, prefix: '', pathStyle: true, credentials });
    const s = newSweep(() => objects);
    s.clock.set(await objects.now());
    const repository = s.repository();
    const [named, young, orphan] = [await s.put(repository), await s.put(repository), await s.put(repository)];
    await s.push(repository, named);
    for (const { key } of [named, orphan]) {
      const stored = new Date(plusMs(await objects.now(), -ORPHANED_LAYER_SPAN_MS - 60_000));
      await utimes(path.join(folder, key), stored, stored);
    }
    await s.sweep();
    assert.deepEqual(await s.keys(), [named.key, young.key].sort());
    assert.deepEqual(s.swept, [orphan.key]);
  });
});
