/** The state of a repository, folded from its stream: refs, layers and default branch. */
import type { ObjectType } from '../git/objects.ts';
import type { RefName } from '../git/ref-name.ts';
import type { ObjectId, Timestamp } from '../kernel/ids.ts';
import type { PersistentMap } from '../kernel/persistent-map.ts';
import type { CommittedLayers } from './layers.ts';

export interface Ref {
  readonly id: ObjectId;
  readonly type: ObjectType;
  /** The object that an annotated tag peels to; null for other objects. */
  readonly peeled: ObjectId | null;
}

/** The memory that a ref takes, its entries in the sorted names and in the tips included. */
export const refMemoryBytes = (name: RefName): number => 350 + 2 * name.length;

export interface OpenRepository extends CommittedLayers {
  readonly status: 'open';
  /** The choice of a push or of the owner. Null while the creator's choice, or else `master`, is the default branch. */
  readonly defaultBranch: string | null;
  readonly refs: PersistentMap<RefName, Ref>;
  readonly layersSizeBytes: number;
  /** The revision of the last compaction whose replaced layers have left storage; -1 before the first. */
  readonly expiredThrough: number;
  /**
   * Whether every object in the layers is reachable from a ref. If so, a want is allowed if its object exists
   * (docs/git-path.md, Wants). A deletion, a forced move or a refused command makes it false, until a compaction drops
   * the objects that no ref reaches.
   */
  readonly clean: boolean;
  /**
   * Since when the layers may hold objects that no ref reaches; null while they are clean. After a compaction that
   * dropped some of them and kept others for the retention: since that compaction.
   */
  readonly uncleanSince: Timestamp | null;
  /**
   * Whether a ref once reached every object in the layers, as far as events say it. Then a fetch may have what was
   * forced away (`servesAllObjects`), until a drop or a purge.
   */
  readonly onceReached: boolean;
  /** Whether a push ever created a branch. The first push that does may choose the default branch. */
  readonly hadBranch: boolean;
  readonly pushedAt: Timestamp | null;
  /** Tips that a ref no longer names, for `LEFT_TIP_SPAN_MS`: a fetch that saw one in the advertisement may want it. */
  readonly leftTips: readonly LeftTip[];
}

export interface LeftTip {
  readonly id: ObjectId;
  readonly leftAt: Timestamp;
}

/** Nobody can use the repository, but it may be restored. */
export interface ClosedRepository {
  readonly status: 'closed';
  readonly before: OpenRepository;
  readonly closedAt: Timestamp;
  /** Whether layers were removed from storage, after which the repository cannot be restored. */
  readonly expired: boolean;
}

export type Repository = OpenRepository | ClosedRepository;

/** The short name of the default branch where nobody chose one. */
export const FALLBACK_DEFAULT_BRANCH = 'master';
