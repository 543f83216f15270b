/**
 * `strata-admin storage expire`: runs the sweeps of the retention, removes what crashes left in the stores of layers,
 * and reports what was recorded and removed.
 */
import type { Logger } from 'pino';
import { readEvent } from '../../core/kernel/decider.ts';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { UNNAMED_LAYER_SPAN_MS } from '../../core/kernel/limits.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../core/repository/events.ts';
import { ownersAmong, readKnownRepositories } from '../../core/use-cases/repositories/known-repositories.ts';
import { removeLeftIncoming } from '../../core/use-cases/sweeping/abandoned-uploads.ts';
import { sweepBuckets } from '../../core/use-cases/sweeping/sweep-buckets.ts';
import { sweepLayers } from '../../core/use-cases/sweeping/sweep-layers.ts';
import { boundBodies } from '../../core/use-cases/webhooks/limit-stored-bodies.ts';
import type { Foundation, FoundationContext } from '../server/foundation.ts';
import { composeRetention } from '../server/retention.ts';
import type { Settings } from '../server/settings.ts';
import type { WithProjections } from './command-projections.ts';

export interface ExpiryReport {
  /** What the log says since the command began; a running server may have been first. */
  readonly expired: { readonly repositories: number; readonly layers: number; readonly size_bytes: number };
  /** The layers that this command removed from storage. */
  readonly removed: number;
  /** What crashes left, as far as this command removed it: half-written layers, and layers that no event names. */
  readonly leftovers: { readonly incoming: number; readonly layers: number };
  /** The operational streams that this command removed from the log. */
  readonly pruned: number;
  /** The payloads and answers of webhook deliveries that this command removed, since their accounts held too many. */
  readonly delivery_bodies: number;
}

export interface ExpiryContext {
  readonly foundation: Foundation;
  readonly layers: LayerStores;
  readonly settings: Pick<Settings, 'retentionMs'>;
  readonly log: Logger;
  readonly withProjections: WithProjections;
}

/** Rejects if the log or the platform's storage cannot be reached. */
export async function expireStorage(context: ExpiryContext): Promise<ExpiryReport> {
  const { foundation, layers, settings, log, withProjections } = context;
  const { events } = foundation.context;
  const { retentionMs } = settings;
  let removed = 0;
  let pruned = 0;
  const onPruned = (): void => {
    pruned += 1;
  };
  const counting: LayerStores = {
    ...layers,
    of: (place, operation) => {
      const store = layers.of(place, operation);
      const remove = async (key: Parameters<typeof store.delete>[0]): Promise<void> => {
        await store.delete(key);
        removed += 1;
      };
      return { ...store, delete: remove };
    },
  };
  const onFault = (what: string, cause: unknown): void => log.warn({ err: cause, what }, 'Recovered from an error');
  const sweeps = composeRetention({ foundation, layers: counting, retentionMs, log, onPruned, onFault });
  const { signal } = new AbortController();
  const before = await events.head();
  await sweeps.expireLayers(signal);
  await sweeps.expireDeleted(signal);
  await sweeps.removePurged(signal);
  await sweeps.askForDrops(signal);
  await sweeps.prune(signal);
  const leftovers = await removeLeftovers({ foundation, layers, log }, signal);
  const bodies = await withProjections(({ readModels }) =>
    boundBodies({ ...foundation.context, due: readModels }, signal),
  );
  return { expired: await expiredSince(events, before), removed, leftovers, pruned, delivery_bodies: bodies };
}

/** Removes what crashes left, as soon as nobody writes it and no append can name it any more. */
async function removeLeftovers(
  { foundation, layers, log }: Pick<ExpiryContext, 'foundation' | 'layers' | 'log'>,
  signal: AbortSignal,
): Promise<ExpiryReport['leftovers']> {
  const { context } = foundation;
  let unnamed = 0;
  const onSwept = (): void => {
    unnamed += 1;
  };
  const owners = ownersAmong(await readKnownRepositories(context.events));
  const sweep = { ...context, ...owners, log, onSwept, spanMs: UNNAMED_LAYER_SPAN_MS };
  const incoming = await removeLeftIncoming({ ...sweep, layers: layers.platform }, signal);
  await sweepLayers({ ...sweep, layers: layers.platform }, signal);
  await sweepBuckets({ ...sweep, layers }, signal);
  return { incoming, layers: unnamed };
}

const PAGE_EVENTS = 100;

async function expiredSince(events: FoundationContext['events'], from: LogPosition): Promise<ExpiryReport['expired']> {
  const repositories = new Set<string>();
  const sums = { layers: 0, size_bytes: 0 };
  for (let position = from; ; ) {
    const page = await events.readAll(position, PAGE_EVENTS);
    for (const recorded of page) {
      ({ position } = recorded);
      if (recorded.type !== 'LayersExpired') continue;
      const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
      if (event.type !== 'LayersExpired') continue;
      repositories.add(recorded.stream);
      for (const { size_bytes } of event.data.layers) {
        sums.layers += 1;
        sums.size_bytes += size_bytes;
      }
    }
    if (page.length < PAGE_EVENTS) return { repositories: repositories.size, ...sums };
  }
}
