/** The sweep of users' buckets removes what no event names there, and no bucket holds up another. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import { streamName } from '../../../../core/kernel/envelope.ts';
import type { RepositoryId, StorageBucketId } from '../../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import { ORPHANED_LAYER_SPAN_MS } from '../../../../core/kernel/limits.ts';
import { type LayerStore, LayerStoreError } from '../../../../core/ports/layer-store.ts';
import { layerKey, type StoredLayer } from '../../../../core/repository/layer.ts';
import {
  BUCKET_SWEEP_LAYERS_MAX,
  BUCKET_SWEEP_SPAN_MS,
  BUCKET_SWEEPS_AT_ONCE_MAX,
  sweepBuckets,
} from '../../../../core/use-cases/sweeping/sweep-buckets.ts';
import { newAccount } from '../../../support/accounts.ts';
import { newEvent } from '../../../support/events.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { startNode } from '../../../support/node.ts';
import { newBucket, newRepositoryIn } from '../../../support/stored-buckets.ts';

const NEVER = new AbortController().signal;

async function newSweep() {
  const events = createMemoryEventStore();
  const node = await startNode(events);
  const { clock } = node;
  const account = await newAccount(node, 'ada');
  const stores = new Map<StorageBucketId, LayerStore>();
  const log = keepLog();
  const swept: string[] = [];
  const context = {
    ...{ events, entities: node.entities, clock, log },
    layers: {
      of: ({ storageBucketId }: { readonly storageBucketId: string | null }) =>
        stores.get(storageBucketId as StorageBucketId) ?? assert.fail(),
    },
    readModels: {
      bucketsInUse: async () => [...stores.keys()].map((storageBucketId) => ({ account, storageBucketId })),
    },
    onSwept: ({ key }: StoredLayer) => swept.push(key),
  };
  /** A bucket with one repository, whose stream has an event. */
  const bucket = async (name: string) => {
    const id = await newBucket(node, account, name);
    const store = createMemoryLayerStore(clock.now);
    stores.set(id, store);
    const repository = (await newRepositoryIn(node, account, id, name)).id;
    return { id, store, repository, orphan: await put(store, repository) };
  };
  const put = async (store: LayerStore, repository: RepositoryId) => {
    const id = randomUUID();
    const key = layerKey(`repositories/${repository}/layers/${id}.tar`);
    await store.put(key, oneByte(), 1);
    return { id, key, size_bytes: 1, sha256: '0'.repeat(64), pack: '0'.repeat(40) };
  };
  const append = async (repository: RepositoryId, types: readonly (readonly [string, number, JsonObject])[]) => {
    const made = types.map(([type, version, data]) => ({ ...newEvent({ type, accountId: account, data }), version }));
    const result = await events.append({
      stream: streamName('repository', repository),
      expected: 'none',
      events: made,
    });
    assert.equal(result.outcome, 'appended');
  };
  const named = (layer: JsonObject | null) =>
    ['RefsUpdated', 2, { push_id: randomUUID(), updates: [], parts: null, layer, ...PUSHED }] as const;
  return {
    ...{ clock, log, swept, stores, context, bucket, put, append, named },
    sweep: () => sweepBuckets(context, NEVER),
  };
}

const PUSHED = { push_options: [], refused: 0, received_bytes: 1, restored: null };

async function* oneByte(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1);
}

const keysIn = (store: LayerStore) => Array.fromAsync(store.list(''), ({ key }) => key);

describe('The sweep of the buckets of users', () => {
  test('removes what no event names, and what expired while the bucket failed; nothing of what is current', async () => {
    const s = await newSweep();
    const { store, repository } = await s.bucket('first');
    const [current, replaced] = [await s.put(store, repository), await s.put(store, repository)];
    const expired = {
      ...{ layers: [{ id: replaced.id, size_bytes: 1, current: false }], reason: 'retention' },
      ...{ compacted_at: 1, shrink_epoch: 1 },
    };
    await s.append(repository, [s.named(current), s.named(replaced), ['LayersExpired', 2, expired]]);
    await s.sweep();
    assert.equal((await keysIn(store)).length, 3, 'all are young');
    s.clock.advance(ORPHANED_LAYER_SPAN_MS + 1);
    await s.sweep();
    assert.deepEqual(await keysIn(store), [current.key]);
    assert.equal(s.swept.length, 2);
  });

  test('leaves alone what the bucket lists of repositories that are not in it', async () => {
    const s = await newSweep();
    const [first, second] = [await s.bucket('first'), await s.bucket('second')];
    await s.append(first.repository, [s.named(null)]);
    await s.append(second.repository, [s.named(null)]);
    const planted = await s.put(second.store, first.repository);
    s.clock.advance(ORPHANED_LAYER_SPAN_MS + 1);
    await s.sweep();
    assert.deepEqual(await keysIn(first.store), []);
    assert.deepEqual(await keysIn(second.store), [planted.key]);
  });

  test('goes on with the other buckets while some are dead and some never answer', async () => {
    const s = await newSweep();
    const [dead, held, healthy] = [await s.bucket('dead'), await s.bucket('held'), await s.bucket('healthy')];
    const { promise, resolve: release } = Promise.withResolvers<void>();
    const gone = async (): Promise<never> => {
      throw new LayerStoreError('unreachable', 'nothing is there');
    };
    s.stores.set(dead.id, { ...dead.store, now: gone });
    s.stores.set(held.id, { ...held.store, now: () => promise.then(s.clock.now) });
    for (const { repository } of [dead, held, healthy]) await s.append(repository, [s.named(null)]);
    s.clock.advance(ORPHANED_LAYER_SPAN_MS + 1);
    const sweeping = s.sweep();
    for (let turn = 0; turn < 1_000 && s.swept.length === 0; turn += 1)
      await new Promise((done) => setTimeout(done, 1));
    assert.deepEqual(s.swept, [healthy.orphan.key]);
    release();
    await sweeping;
    assert.deepEqual(await keysIn(held.store), []);
    assert.deepEqual(
      s.log.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields),
      [{ code: 'unreachable', bucket: dead.id }],
    );
  });

  test('looks at a bounded number of buckets at the same time', async () => {
    const s = await newSweep();
    let [atOnce, most] = [0, 0];
    for (let number = 0; number <= BUCKET_SWEEPS_AT_ONCE_MAX; number += 1) {
      const { id, store } = await s.bucket(`bucket-${number}`);
      const now = async () => {
        atOnce += 1;
        most = Math.max(most, atOnce);
        await new Promise((done) => setTimeout(done, 5));
        atOnce -= 1;
        return s.clock.now();
      };
      s.stores.set(id, { ...store, now });
    }
    await s.sweep();
    assert.equal(most, BUCKET_SWEEPS_AT_ONCE_MAX);
  });

  test('ends a listing that has no end, by its length and by its time', async () => {
    const s = await newSweep();
    const { id, store, repository, orphan } = await s.bucket('endless');
    await s.append(repository, [s.named(null)]);
    s.clock.advance(ORPHANED_LAYER_SPAN_MS + 1);
    let listed = 0;
    let stepMs = 0;
    const endless: StoredLayer = { key: layerKey('repositories/of/nobody'), sizeBytes: 1, storedAt: s.clock.now() };
    s.stores.set(id, {
      ...store,
      list: async function* () {
        yield { key: orphan.key, sizeBytes: 1, storedAt: s.clock.now() };
        for (listed = 1; ; listed += 1) {
          s.clock.advance(stepMs);
          yield endless;
        }
      },
    });
    await s.sweep();
    assert.equal(listed, BUCKET_SWEEP_LAYERS_MAX);
    stepMs = BUCKET_SWEEP_SPAN_MS / 10;
    await s.sweep();
    assert.equal(listed, 11);
  });
});
