/**
 * Merging layers: the objects of several in one pack of their own.
 *
 * Invariants: the merged pack holds every object of its layers, reached by a ref or not, and no other. It is
 * checked for that before anybody gets it.
 */
import type { Layer } from '../repository/layer.ts';
import type { CommittedObjects, LayerContent } from './object-database.ts';

/** A merged pack that is not yet part of the repository. The first call of `install` or `discard` ends it. */
export interface MergedLayers {
  /** The pack's checksum, hex. */
  readonly pack: string;
  readonly objectCount: number;
  /** Returns the layer's tar, in the form of docs/architecture.md, Storage, without updates. */
  layer(description: { readonly [key: string]: string | number | null }): Promise<LayerContent>;
  /**
   * Makes the pack part of this node's cache as this layer, for the objects after the compaction. A failure is logged,
   * not thrown: the next reader fetches the layer from the store.
   */
  install(objects: CommittedObjects, layer: Layer): Promise<void>;
  discard(): Promise<void>;
}

export interface LayerMerges {
  /** Merges some layers of these objects. Rejects with an ObjectDatabaseError, and leaves no files then. */
  merge(objects: CommittedObjects, layers: readonly Layer[], signal: AbortSignal): Promise<MergedLayers>;
}
