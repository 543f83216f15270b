/**
 * A repository in the state of an account: what its events say of its refs, its default branch and its size.
 *
 * Invariants: it is what core/repository/evolve.ts makes of the same events, without layers and tips, which the
 * state does not show. Refs are kept in a plain map that changes in place: a fold passes each event once, and nobody
 * reads an earlier state of it.
 */
import { type RefName, refName } from '../git/ref-name.ts';
import { type ObjectId, objectId, type Timestamp } from '../kernel/ids.ts';
import type { NextTurn } from '../kernel/turns.ts';
import type { RefsUpdated, RepositoryEvent, StoredRefUpdate } from '../repository/events.ts';
import { grownBytes, layersChangeOf } from '../repository/layers.ts';

export interface FoldedRef {
  readonly target: ObjectId;
  /** The object that an annotated tag peels to; null for other objects. */
  readonly peeled: ObjectId | null;
}

export interface FoldedRepository {
  /** The revision of the last event folded; -1 before the first. */
  revision: number;
  /** The choice of a push or of the owner; null if there was none. */
  defaultBranch: string | null;
  pushedAt: Timestamp | null;
  /** The size of its current layers. */
  sizeBytes: number;
  /** Whether its bytes count as used storage: not if they are in a bucket of the account. */
  readonly isOnPlatform: boolean;
  isClosed: boolean;
  /** Null if the fold does not keep them because they are too many: then its stream has them, at this revision. */
  refs: Map<RefName, FoldedRef> | null;
}

export function newRepository(isOnPlatform: boolean): FoldedRepository {
  const initial = { revision: -1, defaultBranch: null, pushedAt: null, sizeBytes: 0 };
  return { ...initial, isOnPlatform, isClosed: false, refs: new Map<RefName, FoldedRef>() };
}

/** Updates of a wide push that are folded in one turn of the event loop. */
const UPDATES_OF_TURN = 2_000;

/** Folds the repository's next event. The updates of a wide push must be in place. */
export async function foldRepository(
  repository: FoldedRepository,
  event: RepositoryEvent,
  { revision, occurredAt }: { readonly revision: number; readonly occurredAt: Timestamp },
  nextTurn: NextTurn,
): Promise<void> {
  const change = layersChangeOf(event);
  if (change !== null) repository.sizeBytes += grownBytes(change);
  repository.revision = revision;
  switch (event.type) {
    case 'RefsUpdated':
      repository.pushedAt = occurredAt;
      await foldUpdates(repository, event, nextTurn);
      break;
    case 'DefaultBranchChanged':
      repository.defaultBranch = event.data.default_branch;
      break;
    case 'RepositoryClosed':
      repository.isClosed = true;
      break;
    case 'RepositoryReopened':
      repository.isClosed = false;
      break;
    case 'LayersExpired':
      // A closed repository without all of its layers is never opened again.
      if (repository.isClosed && change !== null) repository.refs = new Map<RefName, FoldedRef>();
      break;
    case 'LayersCompacted':
      break;
  }
}

async function foldUpdates(repository: FoldedRepository, { data }: RefsUpdated, nextTurn: NextTurn): Promise<void> {
  if (data.parts !== null && data.updates.length === 0) {
    throw new TypeError(`The updates of push ${data.push_id} are in parts that were not read`);
  }
  const { refs } = repository;
  if (refs === null) return;
  for (const [index, update] of data.updates.entries()) {
    if (index % UPDATES_OF_TURN === UPDATES_OF_TURN - 1) await nextTurn();
    foldUpdate(refs, update);
  }
}

function foldUpdate(refs: Map<RefName, FoldedRef>, { ref, after, kind, type, peeled }: StoredRefUpdate): void {
  const name = refName(ref);
  if (kind === 'delete' || type === null) refs.delete(name);
  else refs.set(name, { target: objectId(after), peeled: peeled === null ? null : objectId(peeled) });
}
