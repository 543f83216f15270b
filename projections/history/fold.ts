/**
 * Folds a batch of events into one change for each repository: refs, default branch, layers, or its removal.
 *
 * Invariants: pure. The order of events within a stream decides, and a change keeps only the last value of each
 * ref.
 */
import { accountEventKinds } from '../../core/account/events.ts';
import { isEventOf } from '../../core/account/facet.ts';
import type { RepositoryCreated } from '../../core/account/repositories/events.ts';
import { ownedRepositories } from '../../core/account/repositories/evolve.ts';
import type { ObjectType } from '../../core/git/objects.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { type ObjectId, objectId, type RepositoryId, type Uuid, uuid, ZERO_OBJECT_ID } from '../../core/kernel/ids.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../core/repository/events.ts';
import { type LayersChange, layersChangeOf } from '../../core/repository/layers.ts';

export interface RefValue {
  readonly id: ObjectId;
  readonly type: ObjectType;
  readonly peeled: ObjectId | null;
}

export interface RepositoryChange {
  readonly id: RepositoryId;
  readonly accountId: string;
  /**
   * Set when the repository was removed; then nothing else in the change matters. `closed`: its own stream ended, and
   * all its rows are deleted. `name-released`: only the account's stream removed it; its own stream ended in an earlier
   * batch, or is parked and will end when it is replayed.
   */
  removed: 'closed' | 'name-released' | null;
  /**
   * Set when a removed repository returned: everything stored of it is deleted first. `reopened`: its own stream says
   * so, and its content is what that stream says from its start.
   */
  returned: 'restored' | 'reopened' | null;
  /** Whether the batch holds nothing of it but layers that expired, as they do long after a repository was removed. */
  onlyExpires: boolean;
  /** Set if the repository's creation or restoration is in the batch. */
  initialDefaultBranch: string | null;
  defaultBranch: string | null;
  /** The revision of its own stream's last event in the batch; null if there is none. */
  revision: number | null;
  /** The last value of each ref that moved; null for a deleted ref. */
  readonly refs: Map<string, RefValue | null>;
  /** The bucket that holds its layers, from its creation or restoration; undefined if that is not in the batch. */
  storageBucketId: Uuid | null | undefined;
  readonly layers: LayersChange[];
  /** The commits that branches and tags pointed to at any time in the batch. */
  readonly tips: Set<ObjectId>;
  /** The commits that branches pointed to before the batch. */
  readonly previousTips: Set<ObjectId>;
}

export type RepositoryChanges = Map<RepositoryId, RepositoryChange>;

/**
 * Folds events into the changes of their repositories, in the order of first appearance. `changes` holds the changes
 * that earlier events made.
 */
export function foldBatch(events: readonly RecordedEvent[], changes: RepositoryChanges = new Map()): RepositoryChanges {
  const changeOf = (id: RepositoryId, accountId: string): RepositoryChange => {
    let change = changes.get(id);
    if (change === undefined) {
      change = noChange(id, accountId);
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
    if (!isEventOf(ownedRepositories, event)) continue;
    const id = uuid<RepositoryId>(event.data.repository_id);
    const accountId = entityIdOf(recorded.stream);
    switch (event.type) {
      case 'RepositoryCreated':
        foldCreation(changeOf(id, accountId), event.data);
        break;
      case 'RepositoryRestored':
        changes.set(id, { ...noChange(id, accountId), returned: 'restored' });
        foldCreation(changeOf(id, accountId), event.data);
        break;
      case 'RepositoryDeleted':
        foldDeletion(changeOf(id, accountId));
        break;
      case 'RepositoryDescribed':
      case 'RepositoryRenamed':
        break;
    }
  }
  return changes;
}

function noChange(id: RepositoryId, accountId: string): RepositoryChange {
  return {
    id,
    accountId,
    removed: null,
    returned: null,
    onlyExpires: true,
    storageBucketId: undefined,
    initialDefaultBranch: null,
    defaultBranch: null,
    revision: null,
    refs: new Map(),
    layers: [],
    tips: new Set(),
    previousTips: new Set(),
  };
}

function foldDeletion(change: RepositoryChange): void {
  change.removed ??= change.returned === null ? 'name-released' : 'closed';
}

function foldCreation(change: RepositoryChange, data: RepositoryCreated['data']): void {
  change.onlyExpires = false;
  change.initialDefaultBranch = data.default_branch;
  change.storageBucketId = data.storage_bucket_id === null ? null : uuid(data.storage_bucket_id);
}

function foldRepositoryEvent(change: RepositoryChange, event: RepositoryEvent, revision: number): void {
  change.revision = revision;
  // Current layers expire only after the repository was removed, and with it its list of layers.
  if (event.type === 'LayersExpired') return;
  change.onlyExpires = false;
  const layersChange = layersChangeOf(event);
  if (layersChange !== null) change.layers.push(layersChange);
  switch (event.type) {
    case 'RefsUpdated':
      foldRefs(change, event.data);
      break;
    case 'DefaultBranchChanged':
      change.defaultBranch = event.data.default_branch;
      break;
    case 'RepositoryClosed':
      change.removed = 'closed';
      change.returned = null;
      break;
    case 'RepositoryReopened':
      change.removed = null;
      change.returned = 'reopened';
      break;
    case 'LayersCompacted':
      break;
  }
}

function foldRefs(change: RepositoryChange, data: Extract<RepositoryEvent, { type: 'RefsUpdated' }>['data']): void {
  if (data.parts !== null && data.updates.length === 0) {
    throw new TypeError(`The updates of push ${data.push_id} are in parts that were not read`);
  }
  for (const { ref, before, after, type, peeled, kind } of data.updates) {
    // Branches only: for a tag, `before` does not show the object's type or the commit that it peels to.
    if (ref.startsWith('refs/heads/') && before !== ZERO_OBJECT_ID && !change.refs.has(ref)) {
      change.previousTips.add(objectId(before));
    }
    if (kind === 'delete' || type === null) {
      change.refs.set(ref, null);
      continue;
    }
    const value = { id: objectId(after), type, peeled: peeled === null ? null : objectId(peeled) };
    change.refs.set(ref, value);
    if (isListed(ref)) change.tips.add(value.peeled ?? value.id);
  }
}

/** Returns whether the model keeps the commits that a ref reaches: true for branches and tags. */
export function isListed(ref: string): boolean {
  return ref.startsWith('refs/heads/') || ref.startsWith('refs/tags/');
}
