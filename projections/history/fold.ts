/**
 * What a batch of events makes of each repository: refs, default branch, layers, or its end.
 *
 * Must stay true: pure; the order of events within a stream decides, and only the last word on each ref is kept.
 */
import { accountEventKinds } from '../../core/account/events.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import {
  type LayerId,
  type ObjectId,
  objectId,
  type RepositoryId,
  uuid,
  ZERO_OBJECT_ID,
} from '../../core/kernel/ids.ts';
import { layerKey } from '../../core/ports/layer-store.ts';
import type { Layer, ObjectType } from '../../core/ports/object-database.ts';
import { type RepositoryEvent, repositoryEventKinds, type StoredLayer } from '../../core/repository/events.ts';

export interface RefValue {
  readonly id: ObjectId;
  readonly type: ObjectType;
  readonly peeled: ObjectId | null;
}

export interface RepositoryChange {
  readonly id: RepositoryId;
  readonly accountId: string;
  /**
   * The repository's end came: nothing else matters. `closed` is the end of its own stream; when only its name was
   * given back, its stream has ended before, or is parked and will.
   */
  gone: 'closed' | 'name-given-back' | null;
  /** From its creation, when that is in the batch. */
  initialDefaultBranch: string | null;
  defaultBranch: string | null;
  /** Of its own stream's last event in the batch; null when there is none. */
  revision: number | null;
  /** The last value of each ref that moved; null for a deleted one. */
  readonly refs: Map<string, RefValue | null>;
  readonly layers: Layer[];
  /** Where branches and tags pointed to at any time in the batch. */
  readonly tips: Set<ObjectId>;
  /** Commits that branches pointed to before the batch. */
  readonly left: Set<ObjectId>;
}

/** By repository, in the order in which they first appear. */
export function foldBatch(events: readonly RecordedEvent[]): ReadonlyMap<RepositoryId, RepositoryChange> {
  const changes = new Map<RepositoryId, RepositoryChange>();
  const changeOf = (id: RepositoryId, accountId: string): RepositoryChange => {
    let change = changes.get(id);
    if (change === undefined) {
      change = {
        ...{ id, accountId, gone: null, initialDefaultBranch: null, defaultBranch: null, revision: null },
        ...{ refs: new Map(), layers: [], tips: new Set(), left: new Set() },
      };
      changes.set(id, change);
    }
    return change;
  };
  for (const recorded of events) {
    if (categoryOf(recorded.stream) === 'repository') {
      if (recorded.accountId === null) throw new TypeError(`${recorded.stream} names no account`);
      const change = changeOf(uuid(entityIdOf(recorded.stream)), recorded.accountId);
      foldRepositoryEvent(change, readEvent(repositoryEventKinds, recorded), recorded.revision);
      continue;
    }
    const event = readEvent(accountEventKinds, recorded);
    if (event.type !== 'RepositoryCreated' && event.type !== 'RepositoryDeleted') continue;
    const change = changeOf(uuid(event.data.repository_id), entityIdOf(recorded.stream));
    if (event.type === 'RepositoryDeleted') change.gone ??= 'name-given-back';
    else change.initialDefaultBranch = event.data.default_branch;
  }
  return changes;
}

function foldRepositoryEvent(change: RepositoryChange, event: RepositoryEvent, revision: number): void {
  change.revision = revision;
  switch (event.type) {
    case 'RefsUpdated':
      foldRefs(change, event.data);
      break;
    case 'DefaultBranchChanged':
      change.defaultBranch = event.data.default_branch;
      break;
    case 'RepositoryClosed':
      change.gone = 'closed';
      break;
  }
}

function foldRefs(change: RepositoryChange, data: Extract<RepositoryEvent, { type: 'RefsUpdated' }>['data']): void {
  if (data.parts !== null && data.updates.length === 0) {
    throw new TypeError(`The updates of push ${data.push_id} stand in parts that were not read`);
  }
  for (const { ref, before, after, type, peeled, kind } of data.updates) {
    // Branches only: of a tag this says neither its type nor what it leads to.
    if (ref.startsWith('refs/heads/') && before !== ZERO_OBJECT_ID && !change.refs.has(ref)) {
      change.left.add(objectId(before));
    }
    if (kind === 'delete' || type === null) {
      change.refs.set(ref, null);
      continue;
    }
    const value = { id: objectId(after), type, peeled: peeled === null ? null : objectId(peeled) };
    change.refs.set(ref, value);
    if (isListed(ref)) change.tips.add(value.peeled ?? value.id);
  }
  if (data.layer !== null) change.layers.push(layerOf(data.layer));
}

/** Whether the commits that a ref reaches are kept: those of branches and tags. */
export function isListed(ref: string): boolean {
  return ref.startsWith('refs/heads/') || ref.startsWith('refs/tags/');
}

function layerOf(stored: StoredLayer): Layer {
  return {
    id: uuid<LayerId>(stored.id),
    key: layerKey(stored.key),
    sizeBytes: stored.size_bytes,
    sha256: stored.sha256,
    pack: stored.pack,
  };
}
