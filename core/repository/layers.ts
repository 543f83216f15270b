/**
 * The committed layers of a repository, in order, and how its events change them.
 *
 * Invariants: while the shrink epoch is the same, layers are only added at the end. Every event that removes a
 * layer raises the epoch.
 */
import { AppendList } from '../kernel/append-list.ts';
import { converted, number, object, text } from '../kernel/codec.ts';
import { type LayerId, type RepositoryId, uuid } from '../kernel/ids.ts';
import type { LayersCompacted, LayersExpired, RecordedLayer, RepositoryEvent } from './events.ts';
import type { Layer } from './layer.ts';
import { type LayerKey, layerKey } from './layer.ts';

export interface CommittedLayers {
  readonly layers: AppendList<Layer>;
  /** Every event that removes layers from the list raises it. */
  readonly shrinkEpoch: number;
  /** The shrink epoch since which no event has dropped an object. Null: not known. */
  readonly keptSinceEpoch: number | null;
}

export const NO_LAYERS: CommittedLayers = { layers: AppendList.from([]), shrinkEpoch: 0, keptSinceEpoch: 0 };

export type LayersChange =
  | { readonly kind: 'appended'; readonly layer: Layer }
  | {
      readonly kind: 'replaced';
      readonly removed: ReadonlySet<LayerId>;
      readonly removedSizeBytes: number;
      /** Inserted where the first removed layer was. */
      readonly added: readonly Layer[];
      readonly shrinkEpoch: number;
      /** False if the added layers hold every object of the removed ones. */
      readonly drops: boolean;
    };

/** Returns how an event changes the list of layers; null if it does not. */
export function layersChangeOf(event: RepositoryEvent): LayersChange | null {
  switch (event.type) {
    case 'RefsUpdated':
      return event.data.layer === null ? null : { kind: 'appended', layer: layerOf(event.data.layer) };
    case 'LayersCompacted':
      return {
        ...replacement(event.data.removed, event.data.added.map(layerOf), event.data.shrink_epoch),
        drops: dropsObjects(event),
      };
    case 'LayersExpired': {
      const current = event.data.layers.filter((layer) => layer.current);
      return current.length === 0 ? null : replacement(current, [], event.data.shrink_epoch);
    }
    case 'DefaultBranchChanged':
    case 'RepositoryClosed':
    case 'RepositoryReopened':
      return null;
  }
}

/** Whether a compaction left objects out, instead of merging layers. */
export function dropsObjects({ data: { added } }: LayersCompacted): boolean {
  return added.length === 0 || added.some(({ holds }) => holds !== 'merged');
}

/** Whether a deleted repository cannot come back after this event: its layers went, or a purge found none. */
export function endsRestoration({ data: { layers } }: LayersExpired): boolean {
  return layers.length === 0 || layers.some(({ current }) => current);
}

function replacement(
  removed: readonly { readonly id: string; readonly size_bytes: number }[],
  added: readonly Layer[],
  shrinkEpoch: number,
): Extract<LayersChange, { kind: 'replaced' }> {
  return {
    kind: 'replaced',
    removed: new Set(removed.map(({ id }) => uuid<LayerId>(id))),
    removedSizeBytes: removed.reduce((sum, layer) => sum + layer.size_bytes, 0),
    added,
    shrinkEpoch,
    drops: true,
  };
}

/** Returns by how many bytes the layers grow; negative if they shrink. */
export function grownBytes(change: LayersChange): number {
  if (change.kind === 'appended') return change.layer.sizeBytes;
  return change.added.reduce((sum, layer) => sum + layer.sizeBytes, 0) - change.removedSizeBytes;
}

/**
 * Returns the layers after a change. Throws a TypeError if the change removes no layer, removes one that is not in the
 * list, or removes layers without raising the epoch.
 */
export function changeLayers(before: CommittedLayers, change: LayersChange): CommittedLayers {
  const { layers, shrinkEpoch, keptSinceEpoch } = before;
  if (change.kind === 'appended') return { layers: layers.append(change.layer), shrinkEpoch, keptSinceEpoch };
  if (change.shrinkEpoch <= shrinkEpoch) {
    throw new TypeError(`Layers are removed at shrink epoch ${change.shrinkEpoch}, but it is ${shrinkEpoch} already`);
  }
  const kept: Layer[] = [];
  let removed = 0;
  for (const layer of layers) {
    if (!change.removed.has(layer.id)) {
      kept.push(layer);
      continue;
    }
    if (removed === 0) kept.push(...change.added);
    removed += 1;
  }
  if (removed === 0 || removed !== change.removed.size) {
    throw new TypeError(`${change.removed.size} layers are removed, of which ${removed} are in the list`);
  }
  return {
    layers: AppendList.from(kept),
    shrinkEpoch: change.shrinkEpoch,
    keptSinceEpoch: change.drops ? change.shrinkEpoch : keptSinceEpoch,
  };
}

export function layerOf(stored: RecordedLayer): Layer {
  return {
    id: uuid<LayerId>(stored.id),
    key: layerKey(stored.key),
    sizeBytes: stored.size_bytes,
    sha256: stored.sha256,
    pack: stored.pack,
  };
}

/** Returns the layers that an event brings into storage. Those that it removes from the list stay there. */
export function layersStoredBy(event: RepositoryEvent): readonly RecordedLayer[] {
  switch (event.type) {
    case 'RefsUpdated':
      return event.data.layer === null ? [] : [event.data.layer];
    case 'LayersCompacted':
      return event.data.added;
    case 'LayersExpired':
    case 'DefaultBranchChanged':
    case 'RepositoryClosed':
    case 'RepositoryReopened':
      return [];
  }
}

/** Returns the form in which an event names a layer. */
export function recordedLayer(layer: Layer): RecordedLayer {
  return { id: layer.id, key: layer.key, size_bytes: layer.sizeBytes, sha256: layer.sha256, pack: layer.pack };
}

/** The same form in a snapshot. */
export const storedLayer = converted(
  object<RecordedLayer>({ id: text, key: text, size_bytes: number, sha256: text, pack: text }),
  recordedLayer,
  layerOf,
);

/** Returns the key of a layer of a repository. */
export function layerKeyOf(repository: RepositoryId, id: LayerId): LayerKey {
  return layerKey(`repositories/${repository}/layers/${id}.tar`);
}
