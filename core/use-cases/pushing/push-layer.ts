/**
 * Makes a layer of a push's pack (docs/architecture.md, Storage).
 *
 * Invariants: a layer is stored under a key of its own before any event names it. A layer that no event ever names
 * is an orphan. It is harmless: new-layers.ts removes it with the push, or sweep-layers.ts after a week.
 */
import type { PackRefusal } from '../../git/pack-refusal.ts';
import type { LayerId, PushId, RepositoryId } from '../../kernel/ids.ts';
import { readAgain } from '../../kernel/read-again.ts';
import type { Ids } from '../../ports/clock.ts';
import { LayerStoreError } from '../../ports/layer-store.ts';
import type { LayerPlace, LayerStores } from '../../ports/layer-stores.ts';
import type { LayerContent, Quarantine } from '../../ports/object-database.ts';
import type { StoredRefUpdate } from '../../repository/events.ts';
import type { Layer } from '../../repository/layer.ts';
import { layerKeyOf } from '../../repository/layers.ts';
import type { NewLayers } from './new-layers.ts';

export interface PreparedLayer {
  readonly layer: Omit<Layer, 'sha256'>;
  readonly content: LayerContent;
}

/** Makes the layer of a quarantined pack without storing it. Null for a pack without objects. */
export async function prepareLayer(
  ids: Ids,
  quarantine: Quarantine,
  about: {
    readonly repository: RepositoryId;
    readonly pushId: PushId;
    /**
     * The updates for the list inside the layer: those of the push's first decision, even if a retry decides others.
     */
    readonly updates: readonly StoredRefUpdate[];
  },
): Promise<PreparedLayer | null> {
  if (quarantine.objectCount === 0) return null;
  const id = ids.next<LayerId>();
  const lines = about.updates.map(({ after, ref, peeled }) => `${after} ${ref}${peeled === null ? '' : ` ${peeled}`}`);
  const content = await quarantine.layer(lines, {
    format: 1,
    layer_id: id,
    push_id: about.pushId,
    repository_id: about.repository,
    object_count: quarantine.objectCount,
  });
  const key = layerKeyOf(about.repository, id);
  return { layer: { id, key, sizeBytes: content.sizeBytes, pack: quarantine.pack }, content };
}

/** Stores a layer, which is durable when this resolves. Resolves to a refusal if the platform's store is full. */
export async function storeLayer(
  { stores, newLayers }: { readonly stores: LayerStores; readonly newLayers: NewLayers },
  place: LayerPlace,
  { layer, content }: PreparedLayer,
): Promise<Layer | PackRefusal> {
  try {
    const body = readAgain(() => content.body());
    const put = await newLayers.put(stores.of(place, 'push'), layer.key, body, content.sizeBytes);
    if (put === 'exists') throw new TypeError(`The new layer ${layer.id} exists already`);
    return { ...layer, sha256: content.sha256() };
  } catch (error) {
    const isFull = error instanceof LayerStoreError && error.code === 'layer-store-full';
    if (!isFull || place.storageBucketId !== null) throw error;
    return { refused: 'disk-full', detail: 'no room left for layers' };
  }
}
