/** A repository as its stream says: refs, layers and default branch. */
import { byRefOrder, type RefName } from '../git/ref-name.ts';
import type { AppendList } from '../kernel/append-list.ts';
import type { ObjectId, Timestamp } from '../kernel/ids.ts';
import type { PersistentMap } from '../kernel/persistent-map.ts';
import type { Layer, ObjectType } from '../ports/object-database.ts';

export interface Ref {
  readonly id: ObjectId;
  readonly type: ObjectType;
  /** What an annotated tag leads to, else null. */
  readonly peeled: ObjectId | null;
}

export interface OpenRepository {
  readonly status: 'open';
  /** Chosen by a push or its owner; null while the creator's choice, or `master`, stands. */
  readonly defaultBranch: string | null;
  readonly refs: PersistentMap<RefName, Ref>;
  readonly layers: AppendList<Layer>;
  readonly layersSizeBytes: number;
  /** Raised by events that remove layers (architecture, invariant 3). */
  readonly shrinkEpoch: number;
  /**
   * Whether every object of the layers is reached by a ref, so that existence alone authorises a want: no ref
   * was ever deleted, forced or refused (git-path, Wants).
   */
  readonly clean: boolean;
  /** Whether a push ever brought a branch: the first that does may choose the default. */
  readonly hadBranch: boolean;
  readonly pushedAt: Timestamp | null;
  /** Tips that refs left within the last minute: a fetch that was told of them may still want them. */
  readonly leftTips: readonly LeftTip[];
}

export interface LeftTip {
  readonly id: ObjectId;
  readonly leftAt: Timestamp;
}

export type Repository = OpenRepository | { readonly status: 'closed' };

/** The branch that HEAD names, short, where nothing was ever chosen. */
export const FALLBACK_DEFAULT_BRANCH = 'master';

const SORTED = new WeakMap<PersistentMap<RefName, Ref>, readonly RefName[]>();

/** The names in byte order, sorted once for each state of the refs. */
export function sortedRefNames(refs: PersistentMap<RefName, Ref>): readonly RefName[] {
  const known = SORTED.get(refs);
  if (known !== undefined) return known;
  const sorted = [...refs.keys()].sort(byRefOrder);
  SORTED.set(refs, sorted);
  return sorted;
}
