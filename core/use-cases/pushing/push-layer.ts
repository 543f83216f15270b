/**
 * The layer that a push's pack becomes (architecture, Storage).
 *
 * Must stay true: a layer is stored under a key of its own before any event names it; one that no event comes to
 * name is an orphan, and harmless: it is removed after a week (sweep-layers.ts).
 */
import type { LayerId, PushId, RepositoryId } from '../../kernel/ids.ts';
import type { Ids } from '../../ports/clock.ts';
import { type LayerStore, LayerStoreError, layerKey } from '../../ports/layer-store.ts';
import type { Layer, LayerContent, PackRefusal, Quarantine } from '../../ports/object-database.ts';
import type { StoredLayer, StoredRefUpdate } from '../../repository/events.ts';

export interface PreparedLayer {
  readonly layer: Layer;
  readonly content: LayerContent;
}

/** The layer of a quarantined pack, not yet stored; null for a pack of no objects. */
export async function prepareLayer(
  ids: Ids,
  quarantine: Quarantine,
  about: {
    readonly repository: RepositoryId;
    readonly pushId: PushId;
    /** The updates that the layer's own list shows: what was decided first, lost races aside. */
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
  const key = layerKey(`repositories/${about.repository}/layers/${id}.tar`);
  const { sizeBytes, sha256 } = content;
  return { layer: { id, key, sizeBytes, sha256, pack: quarantine.pack }, content };
}

/** Durable when it resolves; a refusal where there is no room for it, which is an expected end of a push. */
export async function storeLayer(layers: LayerStore, { layer, content }: PreparedLayer): Promise<PackRefusal | null> {
  try {
    const put = await layers.put(layer.key, content.body(), content.sizeBytes);
    if (put === 'exists') throw new TypeError(`The new layer ${layer.id} exists already`);
    return null;
  } catch (error) {
    if (!(error instanceof LayerStoreError) || error.code !== 'layer-store-full') throw error;
    return { refused: 'disk-full', detail: 'no room left for layers' };
  }
}

/** The form in which an event names a layer. */
export function storedLayer(layer: Layer): StoredLayer {
  return { id: layer.id, key: layer.key, size_bytes: layer.sizeBytes, sha256: layer.sha256, pack: layer.pack };
}
