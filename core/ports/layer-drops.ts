/**
 * Keeping what tips reach: the objects of a repository's layers in packs of their own, without those that no tip
 * reaches.
 *
 * Invariants: the packs that `keep` returns hold the closure of every tip, and no other object. It is checked for
 * that before anybody gets them.
 */
import type { ObjectId } from '../kernel/ids.ts';
import type { Layer } from '../repository/layer.ts';
import type { MergedLayers } from './layer-merges.ts';
import type { CommittedObjects } from './object-database.ts';

export interface KeptTips {
  /** What refs name now. */
  readonly refs: readonly ObjectId[];
  /** What they named earlier. */
  readonly left: readonly ObjectId[];
}

export interface KeptObjects {
  /** The closure of the refs' tips; null if there are none. */
  readonly refs: MergedLayers | null;
  /** What the earlier tips reach beyond that; null if that is nothing. */
  readonly left: MergedLayers | null;
  /**
   * Returns what later layers and tips need of the layers' other objects; null if that is nothing. Each call takes the
   * layers committed since the call before, and the tips that are new since then.
   */
  supplement(later: CommittedObjects, added: readonly Layer[], tips: KeptTips): Promise<MergedLayers | null>;
  /**
   * Returns whether layers that `supplement` was given hold an object that the replaced layers hold and no pack made
   * here does. Nothing may refer to such an object: git appends bases to thin packs, and clients send objects again.
   * True as well where the layers of all calls hold too many objects to look for each.
   */
  areDroppedIn(added: readonly Layer[]): Promise<boolean>;
  /** Removes all packs that were not installed. */
  discard(): Promise<void>;
}

export interface LayerDrops {
  /** Rejects with an ObjectDatabaseError, and leaves no files then. */
  keep(objects: CommittedObjects, tips: KeptTips, signal: AbortSignal): Promise<KeptObjects>;
}

export interface LayerCounts {
  /**
   * Returns whether these layers hold an object that no tip reaches. A node that found none at a revision of the
   * repository does not count again at this revision. Rejects with an ObjectDatabaseError.
   */
  holdMore(objects: CommittedObjects, tips: readonly ObjectId[], signal: AbortSignal): Promise<boolean>;
}
