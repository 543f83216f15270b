/**
 * Decides what a push, or its owner, makes of a repository.
 *
 * Must stay true: each accepted update starts from exactly the value the client named; the refs after the
 * whole push can coexist as files in a plain Git repository, so every clone can write them.
 */
import { refCollisions } from '../git/ref-collisions.ts';
import { branchOfRef, byRefOrder, type RefName } from '../git/ref-name.ts';
import { accept, type Decision, refuse } from '../kernel/decider.ts';
import { ZERO_OBJECT_ID } from '../kernel/ids.ts';
import type { RefRefusalCode, RepositoryCommand, RequestedUpdate, UpdateRefs } from './commands.ts';
import type { RefUpdateKind, RepositoryEvent, StoredRefUpdate } from './events.ts';
import { FALLBACK_DEFAULT_BRANCH, type OpenRepository, type Repository, sortedRefNames } from './state.ts';

export function decideRepository(state: Repository, command: RepositoryCommand): Decision<RepositoryEvent> {
  switch (command.type) {
    case 'ChangeDefaultBranch': {
      if (state.status === 'closed') return refuse({ code: 'repository-not-found' });
      // Choosing the fallback is a choice too: from then on no push makes another.
      if (command.branch === (state.defaultBranch ?? command.initialDefaultBranch)) return accept<RepositoryEvent>();
      const data = { default_branch: command.branch };
      return accept<RepositoryEvent>({ type: 'DefaultBranchChanged', data });
    }
    case 'CloseRepository':
      // Closed already: a deletion cut in half, whose second step follows now.
      return state.status === 'closed'
        ? accept<RepositoryEvent>()
        : accept<RepositoryEvent>({ type: 'RepositoryClosed', data: {} });
  }
}

/** What became of one command of a push; `code` is null for accepted ones. */
export interface RefResult {
  readonly ref: RefName;
  readonly code: RefRefusalCode | null;
}

export interface UpdateRefsDecision {
  /** In the order of the commands. */
  readonly results: readonly RefResult[];
  /** Empty when nothing moves: refused, or already so. */
  readonly updates: readonly StoredRefUpdate[];
  /** The branch the first push chooses (interface.md, Repositories); null where nothing is chosen. */
  readonly defaultBranch: string | null;
}

/** Judges a push's commands one by one against the refs as they stand, then their names together. */
export function decideRefs(state: OpenRepository, command: UpdateRefs): UpdateRefsDecision {
  const codes = new Map<RefName, RefRefusalCode | null>();
  for (const update of command.updates) codes.set(update.ref, refusalOf(state, update));
  markCollisions(state, command.updates, codes);
  if (command.atomic && [...codes.values()].some((code) => code !== null)) {
    for (const [ref, code] of codes) codes.set(ref, code ?? 'atomic-push-refused');
  }
  const accepted = command.updates.filter((update) => codes.get(update.ref) === null && update.before !== update.after);
  return {
    results: command.updates.map(({ ref }) => ({ ref, code: codes.get(ref) ?? null })),
    updates: accepted.map(stored),
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
  if (update.tip === null) return 'object-missing';
  const needsCommit = branchOfRef(update.ref) !== null && update.tip.type !== 'commit';
  return needsCommit ? 'branch-needs-commit' : null;
}

/** A ref may not be a folder of another: judged on the state after the accepted commands. */
function markCollisions(
  state: OpenRepository,
  updates: readonly RequestedUpdate[],
  codes: Map<RefName, RefRefusalCode | null>,
): void {
  const created: RefName[] = [];
  const deleted: RefName[] = [];
  for (const { ref, after } of updates) {
    if (codes.get(ref) !== null) continue;
    if (after === null) deleted.push(ref);
    else if (!state.refs.has(ref)) created.push(ref);
  }
  if (created.length === 0) return;
  const changes = { existing: sortedRefNames(state.refs), creates: created, deletes: deleted };
  for (const { ref } of refCollisions(changes)) codes.set(ref, 'ref-collides');
}

function stored(update: RequestedUpdate): StoredRefUpdate {
  return {
    ref: update.ref,
    before: update.before ?? ZERO_OBJECT_ID,
    after: update.after ?? ZERO_OBJECT_ID,
    type: update.tip?.type ?? null,
    peeled: update.tip?.peeled?.id ?? null,
    kind: kindOf(update),
  };
}

function kindOf(update: RequestedUpdate): RefUpdateKind {
  if (update.after === null) return 'delete';
  if (update.before === null) return 'create';
  return update.fastForward ? 'fast-forward' : 'force-push';
}

/**
 * The first push that brings branches, but not the fallback, makes one of them the default: `main` if it is among
 * them, else the first in byte order; never once a choice stands.
 */
function chooseDefaultBranch(
  state: OpenRepository,
  command: UpdateRefs,
  accepted: readonly RequestedUpdate[],
): string | null {
  if (state.hadBranch || state.defaultBranch !== null || command.initialDefaultBranch !== null) return null;
  const names: readonly string[] = accepted
    .flatMap(({ ref, after }) => (after === null ? [] : (branchOfRef(ref) ?? [])))
    .sort(byRefOrder);
  if (names.includes(FALLBACK_DEFAULT_BRANCH)) return null;
  return names.includes('main') ? 'main' : (names[0] ?? null);
}
