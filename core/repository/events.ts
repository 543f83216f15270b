/**
 * Events of a repository, on `repository-<id>`: its refs, default branch, layers and end.
 *
 * Must stay true: a push is one `RefsUpdated`; its bytes stay below `APPEND_SIZE_BYTES_MAX`, so a longer list
 * of updates stands in parts on `refUpdates-<push id>`, which mean nothing until a `RefsUpdated` names them.
 */
import { type DomainEvent, type EventKinds, OPERATIONAL_V1, RECORD_V1 } from '../kernel/decider.ts';
import type { ObjectType } from '../ports/object-database.ts';

export type RefUpdateKind = 'create' | 'fast-forward' | 'force-push' | 'delete';

/** One ref moved. `before` and `after` are 40 hex digits, zeros for none. */
export type StoredRefUpdate = {
  readonly ref: string;
  readonly before: string;
  readonly after: string;
  /** Type of the object at `after`; null for a deletion. */
  readonly type: ObjectType | null;
  /** What an annotated tag leads to, else null. */
  readonly peeled: string | null;
  readonly kind: RefUpdateKind;
};

export type StoredLayer = {
  readonly id: string;
  readonly key: string;
  readonly size_bytes: number;
  readonly sha256: string;
  readonly pack: string;
};

/** Where the updates of a wide push stand. */
export type UpdateParts = {
  readonly stream: string;
  readonly count: number;
  /** How many updates all parts hold together. */
  readonly updates: number;
  /** SHA-256 of the canonical JSON of the whole list, hex. */
  readonly sha256: string;
};

export type RefsUpdated = DomainEvent<
  'RefsUpdated',
  {
    readonly push_id: string;
    /** Empty when `parts` names them. */
    readonly updates: readonly StoredRefUpdate[];
    readonly parts: UpdateParts | null;
    /** Null when the push brought no objects. */
    readonly layer: StoredLayer | null;
    readonly push_options: readonly string[];
    /** How many of the push's commands were refused: then its layer may hold objects that no ref reaches. */
    readonly refused: number;
    /** Bytes of the push's body as they came over the wire: what ingress counts. */
    readonly received_bytes: number;
  }
>;
export type DefaultBranchChanged = DomainEvent<'DefaultBranchChanged', { readonly default_branch: string }>;
/** Stands last: pushes that raced with a deletion conflict with it. */
export type RepositoryClosed = DomainEvent<'RepositoryClosed', Record<never, never>>;

export type RepositoryEvent = RefsUpdated | DefaultBranchChanged | RepositoryClosed;

export const repositoryEventKinds: EventKinds<RepositoryEvent> = {
  RefsUpdated: RECORD_V1,
  DefaultBranchChanged: RECORD_V1,
  RepositoryClosed: RECORD_V1,
};

export type RefUpdatesPart = DomainEvent<'RefUpdatesPart', { readonly updates: readonly StoredRefUpdate[] }>;

export const refUpdatesEventKinds: EventKinds<RefUpdatesPart> = { RefUpdatesPart: OPERATIONAL_V1 };
