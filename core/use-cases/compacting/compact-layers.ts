/**
 * A compaction: merges small layers of a repository into one, and replaces them in the list by one append.
 *
 * Invariants (docs/architecture.md, invariants 2, 3 and 4):
 * - the append of `LayersCompacted` is the only commit point; the merged layer is stored durably before it;
 * - the merged layer holds every object of the layers that it replaces, so the committed layers stay closed under
 *   reachability whatever was pushed in between;
 * - of two compactions that race, the one that finds its layers replaced commits nothing, and removes what it stored;
 * - the replaced layers stay in storage.
 */
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId, LayerId, RepositoryId } from '../../kernel/ids.ts';
import { readAgain } from '../../kernel/read-again.ts';
import type { SettledWithin } from '../../ports/clock.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { LayerMerges, MergedLayers } from '../../ports/layer-merges.ts';
import type { LayerStores } from '../../ports/layer-stores.ts';
import { compactionWantedInMs, layersToMerge } from '../../repository/compaction.ts';
import { decideRepository } from '../../repository/decide.ts';
import { repositories } from '../../repository/evolve.ts';
import type { Layer } from '../../repository/layer.ts';
import { layerKeyOf } from '../../repository/layers.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { type NewLayers, wasTooLate, withNewLayers } from '../pushing/new-layers.ts';
import { committedObjects } from '../reading/committed-objects.ts';
import { type FoundRepository, findRepositoryById, placeOf } from '../repositories/repositories.ts';

export interface CompactionContext extends Context {
  readonly layers: LayerStores;
  readonly objects: LayerMerges;
  readonly failpoint: Failpoint;
  readonly settledWithin: SettledWithin;
}

/**
 * `partly`: more is to be merged immediately, since one compaction is bounded, or many layers came in between.
 * `nothing`: the repository has few layers, or is gone. `lost`: another compaction was faster, or the append came too
 * late.
 */
export type CompactionOutcome = 'compacted' | 'partly' | 'nothing' | 'lost';

/** Compacts a repository once. Rejects if the log, the store or the layers cannot be read or written. */
export async function compactLayers(
  context: CompactionContext,
  of: { readonly account: AccountId; readonly repository: RepositoryId },
  signal: AbortSignal,
): Promise<CompactionOutcome> {
  await context.entities.barrier();
  const found = await findRepositoryById(context, of.account, of.repository);
  if (found === null || typeof found.entity.revision !== 'number') return 'nothing';
  const chosen = layersToMerge(found.entity.state.layers);
  if (chosen.length === 0) return 'nothing';
  const merged = await context.objects.merge(committedObjects(found, found.entity), chosen, signal);
  try {
    const { revision, stream } = found.entity;
    return await withNewLayers(context, stream, async (newLayers) => {
      const layer = await storeMerged({ ...context, newLayers }, found, merged);
      await context.failpoint('compaction-layer-stored');
      return commit({ ...context, events: newLayers }, { ...of, revision, chosen, layer, found, merged });
    });
  } catch (error) {
    if (wasTooLate(error)) return 'lost';
    throw error;
  } finally {
    await merged.discard();
  }
}

/** Stores a pack as a layer, which is durable when this resolves. */
export async function storeMerged(
  { ids, layers, newLayers }: Pick<CompactionContext, 'ids' | 'layers'> & { newLayers: NewLayers },
  found: FoundRepository,
  merged: MergedLayers,
): Promise<Layer> {
  const repository = found.id;
  const id = ids.next<LayerId>();
  const content = await merged.layer(layerDescription(repository, id, merged.objectCount));
  const { sizeBytes } = content;
  const key = layerKeyOf(repository, id);
  const store = layers.of(placeOf(found), 'maintenance');
  const body = readAgain(() => content.body());
  if ((await newLayers.put(store, key, body, sizeBytes)) === 'exists') {
    throw new TypeError(`The new layer ${id} exists already`);
  }
  return { id, key, sizeBytes, sha256: content.sha256(), pack: merged.pack };
}

/** Returns what the `layer.json` of a layer says that a compaction made. */
export function layerDescription(repository: RepositoryId, id: LayerId, objectCount: number) {
  return { format: 1, layer_id: id, push_id: null, repository_id: repository, object_count: objectCount };
}

interface Compaction {
  readonly account: AccountId;
  readonly repository: RepositoryId;
  readonly revision: number;
  readonly chosen: readonly Layer[];
  readonly layer: Layer;
  readonly found: FoundRepository;
  readonly merged: MergedLayers;
}

async function commit(
  context: Omit<CompactionContext, 'events'> & { readonly events: NewLayers },
  compaction: Compaction,
): Promise<CompactionOutcome> {
  const { account, repository, revision, chosen, layer, found, merged } = compaction;
  const removed = chosen.map(({ id }) => id);
  const cause: Cause = systemCause(context.ids, 'layer-compaction');
  // The commit point of a compaction. After a lost race it decides again, whatever was pushed in between.
  const executed = await execute(context, repositories, repository, { account, cause }, (state) =>
    decideRepository(state, { type: 'MergeLayers', revision, removed, added: layer }),
  );
  if ('refused' in executed) return 'nothing';
  const { state } = executed.entity;
  if (state.status === 'closed' || ![...state.layers].some(({ id }) => id === layer.id)) return 'lost';
  await context.failpoint('compaction-appended');
  await merged.install(committedObjects(found, { ...executed.entity, state }), layer);
  // A few layers that came in between wait until there are more: else a busy repository is compacted without end.
  const isBounded = layersToMerge([layer, ...layersBut(chosen, found)]).length > 0;
  return isBounded || compactionWantedInMs(state.layers.length) === 0 ? 'partly' : 'compacted';
}

function layersBut(chosen: readonly Layer[], { entity }: FoundRepository): readonly Layer[] {
  const merged = new Set(chosen.map(({ id }) => id));
  return [...entity.state.layers].filter(({ id }) => !merged.has(id));
}
