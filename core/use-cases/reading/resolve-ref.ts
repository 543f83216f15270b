/**
 * Finds the commit that a reader names by a branch, a tag or a full commit id, never by a revision expression.
 *
 * Must stay true: only commits that the repository's current refs reach are found, so readers cannot see the commits of
 * a deleted branch. If a branch and a tag have one name, the branch is found; `refs/tags/<name>` in full names the tag.
 */
import { parseRefName } from '../../git/ref-name.ts';
import { refuse } from '../../kernel/decider.ts';
import { parseObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Commit, ObjectReader } from '../../ports/object-database.ts';
import { refRuns } from '../../repository/ref-runs.ts';
import type { Ref } from '../../repository/state.ts';
import { currentTips } from './authorise-wants.ts';
import type { FoundRepository } from '../accounts/repositories.ts';

export interface ResolvedRef {
  /** The name that the caller used, or the short name of the default branch. */
  readonly name: string;
  readonly commit: Commit;
}

type Refused = { readonly refused: Refusal };

const BRANCHES = 'refs/heads/';

/** Returns the branch or tag of that name; null if there is none. */
export function findRef(repository: FoundRepository, name: string): Ref | null {
  const { refs } = repository.entity.state;
  const inFull = /^refs\/(heads|tags)\//.test(name) ? [name] : [];
  for (const candidate of [`refs/heads/${name}`, `refs/tags/${name}`, ...inFull]) {
    const parsed = parseRefName(candidate);
    const ref = typeof parsed === 'string' ? refs.get(parsed) : undefined;
    if (ref !== undefined) return ref;
  }
  return null;
}

/** Returns the tip of the default branch; null while it does not exist. */
export function findDefaultBranch(repository: FoundRepository): Ref | null {
  const name = parseRefName(`refs/heads/${repository.defaultBranch}`);
  return typeof name === 'string' ? (repository.entity.state.refs.get(name) ?? null) : null;
}

const BRANCHES_NAMED_MAX = 10;

/** Why there is no default branch: nothing was pushed to any branch, or it was deleted and others are there. */
export function withoutDefaultBranch({ entity, defaultBranch }: FoundRepository): Refusal {
  const branches: string[] = [];
  let others = 0;
  for (const run of refRuns(entity.state.refs)) {
    for (const { name } of run) {
      if (!name.startsWith(BRANCHES)) continue;
      if (branches.length < BRANCHES_NAMED_MAX) branches.push(name.slice(BRANCHES.length));
      else others += 1;
    }
  }
  if (branches.length === 0) return { code: 'repository-without-commits' };
  return { code: 'default-branch-missing', branch: defaultBranch, branches, others };
}

/**
 * A `requested` of null is the default branch. Refused with `repository-without-commits`, `default-branch-missing` or
 * `ref-not-found`.
 */
export async function resolveRef(
  repository: FoundRepository,
  reader: ObjectReader,
  requested: string | null,
): Promise<ResolvedRef | Refused> {
  const ref = requested === null ? findDefaultBranch(repository) : findRef(repository, requested);
  if (ref === null && (requested === null || repository.entity.state.refs.size === 0)) {
    return refuse(withoutDefaultBranch(repository));
  }
  // A tag may peel to a tree or a blob, which have no history and no root folder.
  const commit =
    ref === null
      ? await reachableCommit(repository, reader, requested ?? '')
      : await reader.commit(ref.peeled ?? ref.id);
  return commit === null ? refuse({ code: 'ref-not-found' }) : { name: requested ?? repository.defaultBranch, commit };
}

/** Returns the commit with this full id, in either case, if a current ref reaches it; null otherwise. */
export async function reachableCommit(
  repository: FoundRepository,
  reader: ObjectReader,
  requested: string,
): Promise<Commit | null> {
  const id = parseObjectId(requested.toLowerCase());
  if (id === null) return null;
  const [info] = await reader.lookup([id]);
  if (info?.type !== 'commit') return null;
  const { state } = repository.entity;
  // In a clean repository every object is reached (docs/git-path.md, Wants), and its tips need not be collected.
  if (!state.clean && !currentTips(state).has(id)) {
    const reached = await reader.reachable([id], [...currentTips(state)], String(repository.entity.revision));
    if (!reached.has(id)) return null;
  }
  return reader.commit(id);
}
