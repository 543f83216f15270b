/** The commands of a repository. */
import type { FoundTip } from '../git/objects.ts';
import type { RefName } from '../git/ref-name.ts';
import type { LayerId, ObjectId, Timestamp } from '../kernel/ids.ts';
import type { Layer } from './layer.ts';

/** One command of a push, with what the object database knows about its new tip. */
export interface RequestedUpdate {
  readonly ref: RefName;
  /** Null: the ref must not exist. */
  readonly before: ObjectId | null;
  /** Null: the command deletes the ref, which need not exist if `before` is null too. */
  readonly after: ObjectId | null;
  /** The object at `after`; null for a deletion, and when there is no such object. */
  readonly tip: FoundTip;
  /** Whether `after` descends from `before`. False for a creation, a deletion, a tip that is no commit, and any tag. */
  readonly fastForward: boolean;
}

export interface UpdateRefs {
  /** At most one for each ref. */
  readonly updates: readonly RequestedUpdate[];
  /** Whether the push is refused whole if one of its commands is (gitprotocol-capabilities(5), atomic). */
  readonly atomic: boolean;
  /** The branch that the repository's creator named. If it is not null, no push chooses another. */
  readonly initialDefaultBranch: string | null;
  /** The dates of tips, for the choice of the default branch. A commit that is not in it counts as the oldest. */
  readonly commitSeconds: ReadonlyMap<ObjectId, number>;
}

export type RepositoryCommand =
  | {
      readonly type: 'ChangeDefaultBranch';
      /** The branch's short name. The caller has checked its form. */
      readonly branch: string;
      readonly initialDefaultBranch: string | null;
    }
  | { readonly type: 'CloseRepository' }
  | {
      /** Replaces layers by one that holds every object of theirs and no other. */
      readonly type: 'MergeLayers';
      /** The revision of the stream whose layers were read. */
      readonly revision: number;
      /** In the order of the list; at most `LAYERS_REMOVED_AT_ONCE_MAX`. */
      readonly removed: readonly LayerId[];
      readonly added: Layer;
    }
  | {
      /** Replaces the layers of a revision by layers that hold what tips reach, and drops the other objects. */
      readonly type: 'DropUnreached';
      /** The revision of the stream whose layers were read. */
      readonly revision: number;
      /** All layers of that revision. */
      readonly removed: readonly LayerId[];
      /** Together with the layers committed since, they are closed under reachability. */
      readonly added: readonly { readonly layer: Layer; readonly holds: 'refs' | 'retention' }[];
      /** Whether refs reach every object that these and the layers committed since hold. */
      readonly clean: boolean;
      /** Whether a ref once reached every object that these and the layers committed since hold. */
      readonly onceReached: boolean;
    }
  | {
      /** Makes the list of a restored log that of a newer manifest, whose layers its store holds. */
      readonly type: 'AdoptLayers';
      /** The revision of the stream whose layers were compared. */
      readonly revision: number;
      /** Layers of the list whose bytes have left storage. Without any, nothing is done. */
      readonly gone: readonly LayerId[];
      /** Layers of the list that are in storage, and that the manifest does not name. */
      readonly replaced: readonly LayerId[];
      /** Layers that the manifest names and the list does not. */
      readonly added: readonly Layer[];
    }
  | {
      /** Records that the layers that a compaction replaced leave storage. */
      readonly type: 'ExpireReplacedLayers';
      /** The revision of the `LayersCompacted`. */
      readonly compactedAt: number;
      readonly layers: ReplacedLayers['layers'];
    }
  | {
      /** Records that all layers of a deleted repository leave storage. */
      readonly type: 'ExpireDeleted';
      /** A repository that was closed again later keeps them. */
      readonly closedUntil: Timestamp;
    }
  | { readonly type: 'ReopenRepository' }
  | {
      /** Records that layers leave storage before the retention is over. */
      readonly type: 'PurgeLayers';
      /** Those of the list too, which only a closed repository lets go. Else only replaced ones. */
      readonly all: boolean;
      /** What compactions replaced and no event has let go yet, in the order of the stream. */
      readonly replaced: readonly ReplacedLayers[];
      readonly reason: 'purge' | 'erasure';
    };

/** The layers that one `LayersCompacted` removed from the list. */
export interface ReplacedLayers {
  /** The revision of the `LayersCompacted`. */
  readonly compactedAt: number;
  readonly layers: readonly { readonly id: string; readonly size_bytes: number }[];
}

export type RefRefusalCode =
  | 'ref-moved'
  | 'ref-exists'
  | 'ref-missing'
  | 'ref-collides'
  /** `newNameRefusal` says why no ref of this name is created. */
  | 'name-ambiguous'
  | 'too-many-refs'
  | 'object-missing'
  | 'tag-too-deep'
  | 'branch-needs-commit'
  | 'atomic-push-refused';
