/**
 * Sweeps the buckets of users that repositories are in, as sweep-layers.ts does the platform's storage.
 *
 * Invariants: a bucket that fails, is slow or lists without end delays no other bucket by more than its span. Only
 * layers of repositories that its account has in it are looked at, whatever else the bucket lists.
 */
import { accounts } from '../../account/evolve.ts';
import { createConcurrencyLimit } from '../../kernel/concurrency-limit.ts';
import type { RepositoryId } from '../../kernel/ids.ts';
import type { Clock } from '../../ports/clock.ts';
import { type LayerStore, LayerStoreError } from '../../ports/layer-store.ts';
import type { LayerPlace, LayerStores } from '../../ports/layer-stores.ts';
import type { BucketsInUse } from '../../ports/repository-lists.ts';
import type { StoredLayer } from '../../repository/layer.ts';
import type { Context } from '../../runtime/execute.ts';
import { type LayerSweepContext, sweepLayers } from './sweep-layers.ts';

/**
 * Buckets of users that a node sweeps at the same time, and how long and how far it reads the listing of each.
 * Internal: it is the pace of background work.
 */
export const BUCKET_SWEEPS_AT_ONCE_MAX = 8;
export const BUCKET_SWEEP_SPAN_MS = 10 * 60_000;
export const BUCKET_SWEEP_LAYERS_MAX = 1_000_000;

export interface BucketSweepContext extends Omit<LayerSweepContext, 'layers'> {
  readonly entities: Context['entities'];
  readonly clock: Pick<Clock, 'now' | 'monotonicMs'>;
  readonly layers: Pick<LayerStores, 'of'>;
  readonly readModels: BucketsInUse;
}

/**
 * Rejects if the log cannot be reached, after the other buckets were swept. Resolves early when the signal is aborted.
 */
export async function sweepBuckets(
  context: BucketSweepContext,
  signal: AbortSignal,
  sweep: typeof sweepLayers = sweepLayers,
): Promise<void> {
  const atOnce = createConcurrencyLimit(BUCKET_SWEEPS_AT_ONCE_MAX);
  const places = await context.readModels.bucketsInUse();
  const swept = await Promise.allSettled(
    places.map((place) => atOnce(() => sweepBucket(context, place, signal, sweep))),
  );
  for (const result of swept) if (result.status === 'rejected') throw result.reason;
}

async function sweepBucket(
  context: BucketSweepContext,
  place: LayerPlace,
  signal: AbortSignal,
  sweep: typeof sweepLayers,
): Promise<void> {
  if (signal.aborted) return;
  const { state } = await context.entities.get(accounts, place.account);
  if (state.status !== 'open') return;
  const inBucket = new Set<RepositoryId>();
  for (const [id, { storageBucketId }] of state.repositories.entries()) {
    if (storageBucketId === place.storageBucketId) inBucket.add(id);
  }
  const layers = bounded(context, context.layers.of(place, 'maintenance'));
  try {
    await sweep({ ...context, layers, isInBucket: (repository) => inBucket.has(repository) }, signal);
  } catch (error) {
    if (!(error instanceof LayerStoreError)) throw error;
    const { storageBucketId: bucket } = place;
    context.log.warn({ code: error.code, bucket }, 'A bucket could not be swept');
  }
}

/** A store whose listing ends: what is beyond stays, and is the owner's own. */
function bounded({ clock }: BucketSweepContext, store: LayerStore): LayerStore {
  const until = clock.monotonicMs() + BUCKET_SWEEP_SPAN_MS;
  return {
    ...store,
    list: async function* (prefix): AsyncGenerator<StoredLayer> {
      let left = BUCKET_SWEEP_LAYERS_MAX;
      for await (const layer of store.list(prefix)) {
        if (left <= 0 || clock.monotonicMs() > until) return;
        left -= 1;
        yield layer;
      }
    },
    delete: async (key) => {
      if (clock.monotonicMs() <= until) await store.delete(key);
    },
  };
}
