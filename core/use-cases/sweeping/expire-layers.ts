/**
 * The policy that removes layers which a compaction replaced, after the retention.
 *
 * Invariants (docs/architecture.md, invariant 4): `LayersExpired` is in the log before the first byte is removed. A
 * compaction is passed only after all its replaced layers were removed, in the order of the log, so the mark is all
 * that the policy must remember. Any number of nodes may run it.
 */
import { boundPlace, lostPlace } from '../../account/buckets/binding.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, type LayerId, plusMs, type RepositoryId, uuid } from '../../kernel/ids.ts';
import { REPLACED_LAYERS_KEPT_MS_MIN } from '../../kernel/limits.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import { type LayerStore, LayerStoreError } from '../../ports/layer-store.ts';
import type { LayerPlace, LayerStores } from '../../ports/layer-stores.ts';
import type { Log } from '../../ports/log.ts';
import { decideRepository } from '../../repository/decide.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import { layerKeyOf } from '../../repository/layers.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { type PassingContext, passEvents } from '../../runtime/pass-events.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { LAYER_EXPIRY } from '../../usage/waiting-storage.ts';

export interface LayerExpiryContext extends Context, Pick<PassingContext, 'marks'> {
  readonly layers: Pick<LayerStores, 'of'>;
  readonly past: Pick<PastEntities, 'accountAt'>;
  readonly retentionMs: number;
  readonly log: Log;
  readonly failpoint: Failpoint;
  /** Called before layers are removed that a compaction at this revision replaced: no manifest may name them then. */
  readonly beforeRemoval: (
    store: LayerStore,
    of: { readonly account: AccountId; readonly repository: RepositoryId; readonly revision: number },
  ) => Promise<void>;
}

/**
 * Reads the log from where it stopped, up to the first compaction that is younger than the retention. Rejects if the
 * log, the marks or the store cannot be reached. Resolves early when the signal is aborted.
 */
export async function expireLayers(context: LayerExpiryContext, signal: { readonly aborted: boolean }): Promise<void> {
  await passEvents(context, LAYER_EXPIRY, (recorded) => pass(context, recorded), signal);
}

/** Resolves false if the layers that the event replaced must stay for now. */
async function pass(context: LayerExpiryContext, recorded: RecordedEvent): Promise<boolean> {
  if (recorded.type !== 'LayersCompacted' || categoryOf(recorded.stream) !== repositories.category) return true;
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
  if (event.type !== 'LayersCompacted') return true;
  const keptMs = Math.max(context.retentionMs, REPLACED_LAYERS_KEPT_MS_MIN);
  if (context.clock.now() < plusMs(recorded.occurredAt, keptMs)) return false;
  const repository = uuid<RepositoryId>(entityIdOf(recorded.stream));
  const layers = event.data.removed;
  const about = { account: recorded.accountId, cause: systemCause(context.ids, LAYER_EXPIRY, recorded.id) };
  // Without events the second time, after a process died between this append and the last removal.
  await execute(context, repositories, repository, about, (state) =>
    decideRepository(state, { type: 'ExpireReplacedLayers', compactedAt: recorded.revision, layers }),
  );
  await context.failpoint('expiry-appended');
  const { revision } = recorded;
  await removeLayers(context, await placeAt(context, recorded, repository), { repository, revision, layers });
  return true;
}

/**
 * Returns where the repository of an event is stored, of a time when it was not deleted; null if its account has lost
 * that place. What is in the bucket's other place may be a copy that the owner made.
 */
export async function placeAt(
  { past, entities }: Pick<LayerExpiryContext, 'past' | 'entities'>,
  { accountId, position }: RecordedEvent,
  repository: RepositoryId,
): Promise<LayerPlace | null> {
  if (accountId === null) throw new TypeError('A compaction names no account');
  // The binding never changes, but the account forgets it with the deletion of the repository.
  const then = await past.accountAt(accountId, position);
  const owned = 'repositories' in then ? then.repositories.get(repository) : undefined;
  const place = boundPlace(then, { storageBucketId: owned?.storageBucketId ?? null });
  const { state } = await entities.get(accounts, accountId);
  if (lostPlace(state, place) !== null) return null;
  return { account: accountId, storageBucketId: place.storageBucketId };
}

interface LeavingLayers {
  readonly repository: RepositoryId;
  /** The revision of the compaction, or of the purge. */
  readonly revision: number;
  readonly layers: readonly { readonly id: string }[];
}

/**
 * A bucket of a user that fails does not hold up the others: the sweep of that bucket removes what stays behind.
 * `place` null: the layers stay with the owner of their bucket.
 */
export async function removeLayers(
  {
    layers: stores,
    log,
    failpoint,
    beforeRemoval,
  }: Pick<LayerExpiryContext, 'layers' | 'log' | 'failpoint' | 'beforeRemoval'>,
  place: LayerPlace | null,
  { repository, revision, layers }: LeavingLayers,
): Promise<void> {
  if (place === null) {
    log.info({ repository, layers: layers.length }, 'Layers stay with their owner: their bucket is gone or moved');
    return;
  }
  const store = stores.of(place, 'maintenance');
  try {
    await beforeRemoval(store, { account: place.account, repository, revision });
    for (const { id } of layers) {
      await store.delete(layerKeyOf(repository, uuid<LayerId>(id)));
      await failpoint('expired-layer-removed');
    }
  } catch (error) {
    if (place.storageBucketId === null || !(error instanceof LayerStoreError)) throw error;
    const { storageBucketId: bucket } = place;
    log.warn({ err: error, repository, bucket }, 'Layers stay in a bucket until it is swept');
  }
}
