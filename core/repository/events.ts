/**
 * Events of a repository, on `repository-<id>`: its refs, default branch and layers, its deletion and its restoration.
 *
 * Invariants: a push is one `RefsUpdated`, whose bytes stay below `APPEND_SIZE_BYTES_MAX`. A longer list of updates
 * is stored in parts on `refUpdates-<push id>`. The parts mean nothing until a `RefsUpdated` names them.
 */
import type { ObjectType } from '../git/objects.ts';
import { type DomainEvent, type EventKind, type EventKinds, RECORD_V1 } from '../kernel/decider.ts';
import type { JsonObject } from '../kernel/json.ts';

/** What asked for a change of refs. `service`: the service itself, whom nobody asked. */
export type Door = 'git' | 'api' | 'website' | 'admin' | 'service';

export type RefUpdateKind = 'create' | 'fast-forward' | 'force-push' | 'delete';

/** A ref that was created, moved or deleted. `before` and `after` are 40 hex digits, all zero for no object. */
export type StoredRefUpdate = {
  readonly ref: string;
  readonly before: string;
  readonly after: string;
  /** Type of the object at `after`; null for a deletion. */
  readonly type: ObjectType | null;
  /** The object that an annotated tag peels to; null for other objects. */
  readonly peeled: string | null;
  readonly kind: RefUpdateKind;
};

export type RecordedLayer = {
  readonly id: string;
  readonly key: string;
  readonly size_bytes: number;
  readonly sha256: string;
  readonly pack: string;
};

/** Names the events that hold the updates of a wide push. */
export type UpdateParts = {
  readonly stream: string;
  readonly count: number;
  /** The number of updates in all parts together. */
  readonly updates: number;
  /** SHA-256 of the canonical JSON of the whole list, hex. */
  readonly sha256: string;
};

export type RefsUpdated = DomainEvent<
  'RefsUpdated',
  {
    readonly push_id: string;
    /** Empty if `parts` names them. */
    readonly updates: readonly StoredRefUpdate[];
    readonly parts: UpdateParts | null;
    /** Null if the push brought no objects. */
    readonly layer: RecordedLayer | null;
    /** Whether the accepted refs reach every object that the layer adds. Older versions did not look: false. */
    readonly once_reached: boolean;
    readonly push_options: readonly string[];
    /**
     * The number of the push's commands that were refused. If it is not 0, the layer may hold objects no ref reaches.
     */
    readonly refused: number;
    /** Bytes of the push's body as received over the wire. The ingress quota counts them. */
    readonly received_bytes: number;
    /** The event whose refs were restored. Null for a push. */
    readonly restored: { readonly event_id: string } | null;
    /** Null in older versions, which did not say it. */
    readonly door: Door | null;
    /** SHA-256 of the request in hex, if it named an idempotency key: no other request may use the key. */
    readonly request_digest: string | null;
    /** Reserved, as the next two are. */
    readonly rules: null;
    readonly certificate_ref: null;
    readonly undone: null;
  }
>;
export type DefaultBranchChanged = DomainEvent<'DefaultBranchChanged', { readonly default_branch: string }>;
/**
 * A push that races with the deletion conflicts with this event. Only `RepositoryReopened` and `LayersExpired` may
 * follow.
 */
export type RepositoryClosed = DomainEvent<'RepositoryClosed', Record<never, never>>;
/**
 * A deleted repository is as it was before `RepositoryClosed`. `RepositoryRestored` on its account's stream is written
 * before this event. A push that raced with the closing still conflicts, because it expects an earlier revision. This
 * event never follows `LayersExpired`.
 */
export type RepositoryReopened = DomainEvent<
  'RepositoryReopened',
  {
    /**
     * The choice of a push or the owner before the closing, or null. Read models need it: they removed the repository.
     */
    readonly default_branch: string | null;
    /** The size of its current layers. */
    readonly size_bytes: number;
    readonly pushed_at: string | null;
  }
>;

/**
 * A compaction replaced some layers of the list by others. The removed layers stay in storage until a `LayersExpired`
 * names them.
 *
 * A compaction that drops objects removes every layer that was committed at `revision`. The layers it adds are closed
 * under reachability, together with the layers committed since. The adoption of a manifest removes the layers that the
 * manifest does not name, and adds those that the log did not know: then the list is that of the manifest.
 */
export type LayersCompacted = DomainEvent<
  'LayersCompacted',
  {
    /** The revision of this stream whose layers the compaction read. */
    readonly revision: number;
    /** In the order of the list; at least one, at most `LAYERS_REMOVED_AT_ONCE_MAX`. */
    readonly removed: readonly { readonly id: string; readonly size_bytes: number }[];
    /** Inserted where the first removed layer was. */
    readonly added: readonly CompactedLayer[];
    /** The repository's shrink epoch from now on, higher than before. */
    readonly shrink_epoch: number;
    /** Whether every object in the layers is now reachable from a ref. */
    readonly clean: boolean;
    /** Whether a ref once reached every object in the layers. False in older versions, which did not say it. */
    readonly once_reached: boolean;
  }
>;

type CompactedLayer = RecordedLayer & {
  /**
   * `merged`: every object of some of the removed layers. `refs`: every object reachable from the refs at `revision`.
   * `retention`: every object reachable from a tip of the retention window, without those that `refs` holds; also any
   * layer that an adoption added.
   */
  readonly holds: 'merged' | 'refs' | 'retention';
};

/** The bytes of these layers are removed from storage. Objects that only they held cannot come back. */
export type LayersExpired = DomainEvent<
  'LayersExpired',
  {
    /**
     * At most `LAYERS_REMOVED_AT_ONCE_MAX`; none in the purge of a deleted repository that has none. `current`: the
     * layer was in the list until now, as the layers of a deleted repository are. The others were removed from it by a
     * compaction before.
     */
    readonly layers: readonly { readonly id: string; readonly size_bytes: number; readonly current: boolean }[];
    readonly reason: 'retention' | 'purge' | 'erasure' | 'bucket-deleted';
    /**
     * The revision of the `LayersCompacted` on this stream that had removed all of these layers from the list. Null if
     * they are not just the layers of one compaction.
     */
    readonly compacted_at: number | null;
    /** The repository's shrink epoch from now on: higher than before if one of the layers is current, else the same. */
    readonly shrink_epoch: number;
  }
>;

export type RepositoryEvent =
  | RefsUpdated
  | DefaultBranchChanged
  | LayersCompacted
  | LayersExpired
  | RepositoryClosed
  | RepositoryReopened;

/** Upcasts a version that did not look whether refs reach what its layers hold. */
function notLookedAt(data: JsonObject): JsonObject {
  return { ...data, once_reached: false };
}

/** Writes that version. */
function withoutOnceReached(data: JsonObject): JsonObject {
  const { once_reached: _, ...rest } = data;
  return rest;
}

/** Upcasts a version that did not say by what a change was asked for, nor with which request. */
function ofNoDoor(data: JsonObject): JsonObject {
  return { ...data, door: null, request_digest: null, rules: null, certificate_ref: null, undone: null };
}

/** Writes that version. */
function withoutDoor(data: JsonObject): JsonObject {
  const { door: _door, request_digest: _digest, rules: _rules, certificate_ref: _ref, undone: _undone, ...rest } = data;
  return rest;
}

/**
 * In version 1 refs could not be restored; up to version 2 layers could hold what no ref ever reached; up to version 3
 * nothing said by what a change was asked for.
 */
const REFS_UPDATED: EventKind = {
  version: 4,
  record: true,
  upcasters: [(data) => ({ ...data, restored: null }), notLookedAt, ofNoDoor],
  downcasters: [withoutDoor, withoutOnceReached],
};

/** In version 1 layers could hold what no ref ever reached. */
const LAYERS_COMPACTED: EventKind = {
  version: 2,
  record: true,
  upcasters: [notLookedAt],
  downcasters: [withoutOnceReached],
};

/** In version 1 no compaction was named. */
const LAYERS_EXPIRED: EventKind = {
  version: 2,
  record: true,
  upcasters: [(data) => ({ ...data, compacted_at: null })],
};

export const repositoryEventKinds: EventKinds<RepositoryEvent> = {
  RefsUpdated: REFS_UPDATED,
  DefaultBranchChanged: RECORD_V1,
  LayersCompacted: LAYERS_COMPACTED,
  LayersExpired: LAYERS_EXPIRED,
  RepositoryClosed: RECORD_V1,
  RepositoryReopened: RECORD_V1,
};

export type RefUpdatesPart = DomainEvent<'RefUpdatesPart', { readonly updates: readonly StoredRefUpdate[] }>;

export const refUpdatesEventKinds: EventKinds<RefUpdatesPart> = { RefUpdatesPart: RECORD_V1 };
