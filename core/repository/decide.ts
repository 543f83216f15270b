/**
 * Decides the commands of a repository: those of its owner, the ref updates of a push, and compactions.
 *
 * Invariants: before each accepted update, the ref has exactly the value that the client named. After the whole
 * push all refs can exist side by side as files of a plain Git repository, so that every clone can write them.
 */
import { refCollisions } from '../git/ref-collisions.ts';
import { branchOfRef, byRefOrder, newNameRefusal, type RefName } from '../git/ref-name.ts';
import { MIB } from '../kernel/byte-units.ts';
import { accept, type Decision, refuse } from '../kernel/decider.ts';
import { type LayerId, ZERO_OBJECT_ID } from '../kernel/ids.ts';
import { finish, inParts, type Steps } from '../kernel/turns.ts';
import type { RefRefusalCode, RepositoryCommand, RequestedUpdate, UpdateRefs } from './commands.ts';
import type { LayersCompacted, LayersExpired, RefUpdateKind, RepositoryEvent, StoredRefUpdate } from './events.ts';
import type { Layer } from './layer.ts';
import { recordedLayer } from './layers.ts';
import { LAYERS_REMOVED_AT_ONCE_MAX } from './limits.ts';
import { sortedRefNames } from './ref-runs.ts';
import { FALLBACK_DEFAULT_BRANCH, type OpenRepository, type Repository, refMemoryBytes } from './state.ts';

/**
 * Memory that the refs of a repository take in a server, by `refMemoryBytes`: some 400,000 with names of 70 characters.
 * A server holds all refs of a repository together, and each of their names stays in the log.
 */
export const REPOSITORY_REFS_MEMORY_BYTES_MAX = 192 * MIB;

export function decideRepository(state: Repository, command: RepositoryCommand): Decision<RepositoryEvent> {
  switch (command.type) {
    case 'ChangeDefaultBranch': {
      if (state.status === 'closed') return refuse({ code: 'repository-not-found' });
      // Choosing the fallback is recorded too: after that no push chooses another branch.
      if (command.branch === (state.defaultBranch ?? command.initialDefaultBranch)) return accept<RepositoryEvent>();
      const data = { default_branch: command.branch };
      return accept<RepositoryEvent>({ type: 'DefaultBranchChanged', data });
    }
    case 'CloseRepository':
      // Idempotent: a deletion that stopped after this event is repeated to finish its second step.
      return state.status === 'closed'
        ? accept<RepositoryEvent>()
        : accept<RepositoryEvent>({ type: 'RepositoryClosed', data: {} });
    case 'MergeLayers':
      return state.status === 'closed' ? refuse({ code: 'repository-not-found' }) : mergeLayers(state, command);
    case 'DropUnreached':
      return state.status === 'closed' ? refuse({ code: 'repository-not-found' }) : dropUnreached(state, command);
    case 'AdoptLayers':
      return state.status === 'closed' ? refuse({ code: 'repository-not-found' }) : adoptLayers(state, command);
    case 'ExpireReplacedLayers':
      return expireReplacedLayers(state.status === 'closed' ? state.before : state, command);
    case 'ExpireDeleted':
      if (state.status === 'open' || state.closedAt > command.closedUntil) return accept<RepositoryEvent>();
      return accept<RepositoryEvent>(...currentExpired(state.before, 'retention', LAYERS_REMOVED_AT_ONCE_MAX));
    case 'ReopenRepository':
      return reopen(state);
    case 'PurgeLayers':
      if (command.all && state.status === 'open') return refuse({ code: 'repository-not-deleted' });
      return accept<RepositoryEvent>(...purged(state, command));
  }
}

/** Accepts nothing if the repository is open: another request reopened it. */
function reopen(state: Repository): Decision<RepositoryEvent> {
  if (state.status === 'open') return accept<RepositoryEvent>();
  if (state.expired) return refuse({ code: 'objects-expired', event: null });
  const { defaultBranch, layersSizeBytes, pushedAt } = state.before;
  const data = { default_branch: defaultBranch, size_bytes: layersSizeBytes, pushed_at: pushedAt };
  return accept<RepositoryEvent>({ type: 'RepositoryReopened', data });
}

/**
 * Returns as many events as name `LAYERS_REMOVED_AT_ONCE_MAX` layers: the next call returns the next ones. The layers
 * of a closed repository come last.
 */
function purged(
  state: Repository,
  { replaced, all, reason }: Extract<RepositoryCommand, { type: 'PurgeLayers' }>,
): readonly LayersExpired[] {
  const current = state.status === 'closed' ? state.before : state;
  const { layers, shrinkEpoch, expiredThrough } = current;
  const events: LayersExpired[] = [];
  let room = LAYERS_REMOVED_AT_ONCE_MAX;
  for (const { compactedAt, layers: gone } of replaced) {
    if (compactedAt <= expiredThrough) continue;
    room -= gone.length;
    if (room < 0) return events;
    const named = gone.map(({ id, size_bytes }) => ({ id, size_bytes, current: false }));
    const data = { layers: named, reason, compacted_at: compactedAt, shrink_epoch: shrinkEpoch };
    events.push({ type: 'LayersExpired', data });
  }
  if (!all) return events;
  const isEmpty = state.status === 'closed' && !state.expired && layers.length === 0;
  // Nothing is left to remove, but the repository must not come back.
  const end = isEmpty && reason === 'purge' && room > 0 ? [emptyPurge(shrinkEpoch)] : [];
  return [...events, ...currentExpired(current, reason, room), ...end];
}

function emptyPurge(shrink_epoch: number): LayersExpired {
  return { type: 'LayersExpired', data: { layers: [], reason: 'purge', compacted_at: null, shrink_epoch } };
}

/** Returns the event that removes the first layers of the list, or none if there is nothing to remove. */
function currentExpired(
  { layers, shrinkEpoch }: OpenRepository,
  reason: LayersExpired['data']['reason'],
  atMost: number,
): readonly LayersExpired[] {
  if (layers.length === 0 || atMost === 0) return [];
  const named = [...layers].slice(0, atMost).map(({ id, sizeBytes }) => ({ id, size_bytes: sizeBytes, current: true }));
  const data = { layers: named, reason, compacted_at: null, shrink_epoch: shrinkEpoch + 1 };
  return [{ type: 'LayersExpired', data }];
}

/** Accepts nothing the second time: compactions expire in their order. */
function expireReplacedLayers(
  { expiredThrough, shrinkEpoch }: OpenRepository,
  { compactedAt, layers }: Extract<RepositoryCommand, { type: 'ExpireReplacedLayers' }>,
): Decision<RepositoryEvent> {
  if (compactedAt <= expiredThrough) return accept<RepositoryEvent>();
  return accept<RepositoryEvent>({
    type: 'LayersExpired',
    data: {
      layers: layers.map(({ id, size_bytes }) => ({ id, size_bytes, current: false })),
      reason: 'retention',
      compacted_at: compactedAt,
      shrink_epoch: shrinkEpoch,
    },
  });
}

/** Accepts nothing if one of the layers is no longer in the list: another compaction has replaced it. */
function mergeLayers(
  { layers, shrinkEpoch, clean, onceReached }: OpenRepository,
  { revision, removed, added }: Extract<RepositoryCommand, { type: 'MergeLayers' }>,
): Decision<RepositoryEvent> {
  const wanted = new Set(removed);
  const found = [...layers].filter(({ id }) => wanted.has(id));
  if (found.length === 0 || found.length < wanted.size) return accept<RepositoryEvent>();
  return accept<RepositoryEvent>({
    type: 'LayersCompacted',
    data: {
      revision,
      removed: found.map(({ id, sizeBytes }) => ({ id, size_bytes: sizeBytes })),
      added: [{ ...recordedLayer(added), holds: 'merged' }],
      shrink_epoch: shrinkEpoch + 1,
      // The objects are the same.
      clean,
      once_reached: onceReached,
    },
  });
}

/** Accepts nothing if another compaction has replaced one of the layers: the list begins with them until then. */
function dropUnreached(
  { layers, shrinkEpoch }: OpenRepository,
  { revision, removed, added, clean, onceReached }: Extract<RepositoryCommand, { type: 'DropUnreached' }>,
): Decision<RepositoryEvent> {
  const found = [...layers].slice(0, removed.length);
  if (found.length < removed.length || found.some(({ id }, index) => id !== removed[index])) {
    return accept<RepositoryEvent>();
  }
  return accept<RepositoryEvent>({
    type: 'LayersCompacted',
    data: {
      revision,
      removed: found.map(({ id, sizeBytes }) => ({ id, size_bytes: sizeBytes })),
      added: added.map(({ layer, holds }) => ({ ...recordedLayer(layer), holds })),
      shrink_epoch: shrinkEpoch + 1,
      clean,
      once_reached: onceReached,
    },
  });
}

/**
 * Accepts nothing if one of the layers is no longer in the list. What is in storage is replaced by an event of its own,
 * so that it leaves storage after the retention, as after any compaction.
 */
function adoptLayers(
  { layers, shrinkEpoch, onceReached }: OpenRepository,
  { revision, gone, replaced, added }: Extract<RepositoryCommand, { type: 'AdoptLayers' }>,
): Decision<RepositoryEvent> {
  const sizes = new Map([...layers].map(({ id, sizeBytes }) => [id, sizeBytes] as const));
  if (gone.length === 0 || [...gone, ...replaced].some((id) => !sizes.has(id))) return accept<RepositoryEvent>();
  const named = (ids: readonly LayerId[]) => ids.map((id) => ({ id, size_bytes: sizes.get(id) ?? 0 }));
  // Whether refs reach every object of the manifest's layers is not known.
  const clean = added.length === 0 && gone.length + replaced.length === layers.length;
  const compacted = (removed: readonly LayerId[], epoch: number, by: readonly Layer[]): LayersCompacted => ({
    type: 'LayersCompacted',
    data: {
      revision,
      removed: named(removed),
      added: by.map((layer) => ({ ...recordedLayer(layer), holds: 'retention' })),
      shrink_epoch: epoch,
      clean,
      once_reached: onceReached && added.length === 0,
    },
  });
  const rest = replaced.length === 0 ? [] : [compacted(replaced, shrinkEpoch + 2, [])];
  const shrink_epoch = shrinkEpoch + 1 + rest.length;
  const layersGone = named(gone).map((layer) => ({ ...layer, current: false }));
  const expired: LayersExpired['data'] = { layers: layersGone, reason: 'purge', compacted_at: null, shrink_epoch };
  return accept<RepositoryEvent>(compacted(gone, shrinkEpoch + 1, added), ...rest, {
    type: 'LayersExpired',
    data: expired,
  });
}

/** The result of one command of a push. `code` is null if the command was accepted. */
export interface RefResult {
  readonly ref: RefName;
  readonly code: RefRefusalCode | null;
}

export interface UpdateRefsDecision {
  /** In the order of the commands. */
  readonly results: readonly RefResult[];
  /** Empty if no ref changes: every command was refused, or its ref has the new value already. */
  readonly updates: readonly StoredRefUpdate[];
  /** The branch that the first push chooses (docs/interface.md, Repositories), or null. */
  readonly defaultBranch: string | null;
}

/** Checks each command of a push against the current refs, then the names of all refs after the push together. */
export function decideRefs(state: OpenRepository, command: UpdateRefs): UpdateRefsDecision {
  return finish(decidingRefs(state, command));
}

/** Decides like `decideRefs`, in steps: a push may have 100,000 commands. */
export function* decidingRefs(state: OpenRepository, command: UpdateRefs): Steps<UpdateRefsDecision> {
  const codes = new Map<RefName, RefRefusalCode | null>();
  yield* inParts(command.updates, (update) => void codes.set(update.ref, refusalOf(state, update)));
  yield* markCollisions(state, command.updates, codes);
  yield* markBeyondRoom(state, command.updates, codes);
  if (command.atomic && [...codes.values()].some((code) => code !== null)) {
    for (const [ref, code] of codes) codes.set(ref, code ?? 'atomic-push-refused');
  }
  const accepted: RequestedUpdate[] = [];
  const results: RefResult[] = [];
  const updates: StoredRefUpdate[] = [];
  yield* inParts(command.updates, (update) => {
    const code = codes.get(update.ref) ?? null;
    results.push({ ref: update.ref, code });
    if (code !== null || update.before === update.after) return;
    accepted.push(update);
    updates.push(stored(update));
  });
  return {
    results,
    updates,
    defaultBranch: chooseDefaultBranch(state, command, accepted),
  };
}

function refusalOf(state: OpenRepository, update: RequestedUpdate): RefRefusalCode | null {
  const current = state.refs.get(update.ref)?.id ?? null;
  if (current !== update.before) {
    if (update.before === null) return 'ref-exists';
    return current === null ? 'ref-missing' : 'ref-moved';
  }
  if (update.after === null) return null;
  if (current === null && newNameRefusal(update.ref) !== null) return 'name-ambiguous';
  if (update.tip === null) return 'object-missing';
  if (update.tip === 'tag-too-deep') return 'tag-too-deep';
  const needsCommit = branchOfRef(update.ref) !== null && update.tip.type !== 'commit';
  return needsCommit ? 'branch-needs-commit' : null;
}

/** Refuses new refs whose names would be a folder of another ref, among the refs after all accepted commands. */
function* markCollisions(
  state: OpenRepository,
  updates: readonly RequestedUpdate[],
  codes: Map<RefName, RefRefusalCode | null>,
): Steps<void> {
  const created: RefName[] = [];
  const deleted: RefName[] = [];
  yield* inParts(updates, ({ ref, after }) => {
    if (codes.get(ref) !== null) return;
    const exists = state.refs.has(ref);
    if (after === null && exists) deleted.push(ref);
    if (after !== null && !exists) created.push(ref);
  });
  if (created.length === 0) return;
  const changes = { existing: sortedRefNames(state.refs), creates: created, deletes: deleted };
  for (const { ref } of yield* refCollisions(changes)) codes.set(ref, 'ref-collides');
}

/** Refuses new refs beyond the memory that a repository's refs may take, after all accepted deletions. */
function* markBeyondRoom(
  state: OpenRepository,
  updates: readonly RequestedUpdate[],
  codes: Map<RefName, RefRefusalCode | null>,
): Steps<void> {
  let room = REPOSITORY_REFS_MEMORY_BYTES_MAX - state.refs.weight;
  const created: RefName[] = [];
  yield* inParts(updates, ({ ref, after }) => {
    if (codes.get(ref) !== null) return;
    const exists = state.refs.has(ref);
    if (after === null && exists) room += refMemoryBytes(ref);
    if (after !== null && !exists) created.push(ref);
  });
  yield* inParts(created, (ref) => {
    room -= refMemoryBytes(ref);
    if (room < 0) codes.set(ref, 'too-many-refs');
  });
}

function stored(update: RequestedUpdate): StoredRefUpdate {
  const tip = update.tip === 'tag-too-deep' ? null : update.tip;
  return {
    ref: update.ref,
    before: update.before ?? ZERO_OBJECT_ID,
    after: update.after ?? ZERO_OBJECT_ID,
    type: tip?.type ?? null,
    peeled: tip?.peeled?.id ?? null,
    kind: kindOf(update),
  };
}

function kindOf(update: RequestedUpdate): RefUpdateKind {
  if (update.after === null) return 'delete';
  if (update.before === null) return 'create';
  return update.fastForward ? 'fast-forward' : 'force-push';
}

/**
 * Returns the default branch that a push chooses, or null. The first push that creates branches, but not the fallback,
 * chooses `main` if it is among them, else the one whose tip has the newest date, which is most likely what its HEAD
 * names; equal dates: the first in byte order. A push never replaces an earlier choice.
 */
function chooseDefaultBranch(
  state: OpenRepository,
  command: UpdateRefs,
  accepted: readonly RequestedUpdate[],
): string | null {
  if (!mayChooseDefaultBranch(state, command)) return null;
  const branches = accepted.flatMap(({ ref, after }): { name: string; seconds: number }[] => {
    const name = branchOfRef(ref);
    return after === null || name === null ? [] : [{ name, seconds: command.commitSeconds.get(after) ?? -1 }];
  });
  const named = (wanted: string) => branches.some(({ name }) => name === wanted);
  if (named(FALLBACK_DEFAULT_BRANCH)) return null;
  if (named('main')) return 'main';
  const [newest] = branches.sort((a, b) => b.seconds - a.seconds || byRefOrder(a.name, b.name));
  return newest?.name ?? null;
}

/** Whether a push may choose the default branch: nobody chose one, and no push created a branch yet. */
export function mayChooseDefaultBranch(
  { hadBranch, defaultBranch }: OpenRepository,
  { initialDefaultBranch }: Pick<UpdateRefs, 'initialDefaultBranch'>,
): boolean {
  return !hadBranch && defaultBranch === null && initialDefaultBranch === null;
}
