/**
 * Tells the log, once a day, what crashes have left in the stores of layers: half-written layers, and layers that no
 * event names. No quota counts them, so an operator must see them move.
 *
 * Invariants: it changes nothing. A line names one leftover with its account; beyond `LISTED_LEFTOVERS_MAX` lines the
 * sums alone go on.
 */
import type { AccountId, RepositoryId, Timestamp } from '../../kernel/ids.ts';
import { UNNAMED_LAYER_SPAN_MS } from '../../kernel/limits.ts';
import type { LayerStores } from '../../ports/layer-stores.ts';
import type { Log } from '../../ports/log.ts';
import { type LeftIncomingContext, leftIncoming } from './abandoned-uploads.ts';
import { type BucketSweepContext, sweepBuckets } from './sweep-buckets.ts';
import { type UnnamedLayersContext, unnamedLayers } from './sweep-layers.ts';

/**
 * The lines of the log that name what crashes left in the stores of layers, each day. Internal: it bounds lines of the
 * operator's log.
 */
const LISTED_LEFTOVERS_MAX = 1_000;

export interface LeftoversContext
  extends Omit<LeftIncomingContext, 'layers'>,
    Omit<BucketSweepContext, 'layers' | 'onSwept' | 'ownerOf' | 'spanMs'> {
  readonly layers: Pick<LayerStores, 'platform' | 'of'>;
  readonly log: Log;
}

/** The sums of one listing, for the metrics. */
export interface Leftovers {
  readonly count: number;
  /** Without uploads to a bucket, whose sizes the bucket does not tell. */
  readonly sizeBytes: number;
}

interface Leftover {
  readonly account: AccountId | null;
  readonly repository: RepositoryId | null;
  readonly sizeBytes: number | null;
  readonly at: Timestamp;
}

/** Rejects if the log or the platform's store cannot be reached. */
export async function listLeftovers(context: LeftoversContext, signal: AbortSignal): Promise<Leftovers> {
  const sums = { count: 0, sizeBytes: 0 };
  const tell = ({ account, repository, sizeBytes, at }: Leftover, what: string): void => {
    sums.count += 1;
    sums.sizeBytes += sizeBytes ?? 0;
    if (sums.count <= LISTED_LEFTOVERS_MAX) context.log.warn({ account, repository, sizeBytes, at }, what);
  };
  const tellUnnamed = async (of: UnnamedLayersContext): Promise<void> => {
    for await (const layer of unnamedLayers({ ...of, spanMs: UNNAMED_LAYER_SPAN_MS }, signal)) {
      tell({ ...layer, at: layer.storedAt }, 'A crash left a layer that no event names');
    }
  };
  for await (const left of leftIncoming({ ...context, layers: context.layers.platform })) {
    tell(left, 'A crash left a half-written layer');
  }
  await tellUnnamed({ ...context, layers: context.layers.platform });
  await sweepBuckets({ ...context, onSwept: () => undefined }, signal, tellUnnamed);
  if (sums.count > 0) context.log.warn({ ...sums }, 'Crashes left this in the stores of layers');
  return sums;
}
