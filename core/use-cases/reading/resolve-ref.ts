/**
 * The one place that says what a text names for who reads a repository: its commit by an id, or one of its refs,
 * never a revision expression.
 *
 * Invariants: the form of the text decides first, so that nobody takes over what another pinned by pushing a name: 40
 * hex digits are an id, `HEAD` is the default branch, and what begins with `refs/` is a full name; each of these is
 * nothing else. Then a branch is found before a tag, and a short id after both. Only commits that the repository's
 * current refs reach are found, so readers cannot see the commits of a deleted branch.
 */
import type { Commit } from '../../git/objects.ts';
import { byRefOrder } from '../../git/ref-name.ts';
import { refuse } from '../../kernel/decider.ts';
import { OBJECT_ID_DIGITS, type ObjectId, parseObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import { type Refs, refRuns } from '../../repository/ref-runs.ts';
import type { Ref } from '../../repository/state.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { isReachedByRefs, reachedByRefs } from './authorise-wants.ts';

export interface ResolvedRef {
  /** The text that the caller used, or the short name of the default branch. */
  readonly name: string;
  readonly commit: Commit;
}

/** What a text names: a commit, or, of a tag, what it leads to in the end. */
export interface ResolvedObject {
  readonly name: string;
  /** Null for a tree or a blob. */
  readonly commit: Commit | null;
  /** The tree that the files are in; of a tag of a blob that blob. */
  readonly root: Root;
}

export interface Root {
  readonly type: 'tree' | 'blob';
  readonly id: ObjectId;
}

export interface NamedRef {
  readonly fullName: string;
  readonly ref: Ref;
}

type Refused = { readonly refused: Refusal };
type RefsOf = Pick<FoundRepository, 'entity' | 'defaultBranch'>;

const FOLDERS = { branch: 'refs/heads/', tag: 'refs/tags/' } as const;

export type RefKind = keyof typeof FOLDERS;

/** The text that names the default branch. */
export const HEAD = 'HEAD';
/** What a full name begins with. */
export const FULL = 'refs/';

/** Returns the id that a text is: 40 hex digits of either case. */
export function idNamed(text: string): ObjectId | null {
  return parseObjectId(text.toLowerCase());
}

/** Digits of the shortest id that is looked for. */
export const SHORT_ID_DIGITS_MIN = 7;
/** Commits that a refusal names when several begin alike. */
export const SHORT_ID_COMMITS_NAMED_MAX = 10;
/** Objects whose ids begin alike that are looked at; of more no commit is said to be the only one. */
export const SHORT_ID_OBJECTS_MAX = 1_000;

const SHORT_ID = new RegExp(`^[0-9a-f]{${SHORT_ID_DIGITS_MIN},${OBJECT_ID_DIGITS - 1}}$`);

/** Returns the digits of a text that may be a short id, in lower case; null for another text. */
export function shortIdNamed(text: string): string | null {
  const digits = text.toLowerCase();
  return SHORT_ID.test(digits) ? digits : null;
}

/** Whether the text can only be a short id here, since no ref has this name. Which commit it means may change. */
export function isShortId(repository: RefsOf, text: string): boolean {
  return shortIdNamed(text) !== null && findRef(repository, text) === null;
}

/** Returns the ref that the text names; null if there is none, or if the text is an id. */
export function findRef(repository: RefsOf, text: string): NamedRef | null {
  if (idNamed(text) !== null) return null;
  const { refs } = repository.entity.state;
  if (text === HEAD) return refNamed(refs, defaultBranchRef(repository));
  if (text.startsWith(FULL)) return refNamed(refs, text);
  return refNamed(refs, `${FOLDERS.branch}${text}`) ?? refNamed(refs, `${FOLDERS.tag}${text}`);
}

/** Most texts name no ref, so the map answers without a check of their form. */
function refNamed(refs: { get(fullName: string): Ref | undefined }, fullName: string): NamedRef | null {
  const ref = refs.get(fullName);
  return ref === undefined ? null : { fullName, ref };
}

/** Returns the branch or the tag of exactly this short name. */
export function findOfKind(refs: Refs, kind: RefKind, shortName: string): Ref | null {
  return refNamed(refs, `${FOLDERS[kind]}${shortName}`)?.ref ?? null;
}

/** Returns the short name of a ref of this kind; undefined for any other ref. */
export function shortNameOf(kind: RefKind, fullName: string): string | undefined {
  return fullName.startsWith(FOLDERS[kind]) ? fullName.slice(FOLDERS[kind].length) : undefined;
}

/** Returns a text that names this branch: its short name, unless that names something else. */
export function branchText(repository: RefsOf, branch: string): string {
  const fullName = `${FOLDERS.branch}${branch}`;
  const isTaken = findRef(repository, branch)?.fullName !== fullName;
  return isTaken && refNamed(repository.entity.state.refs, fullName) !== null ? fullName : branch;
}

/** Returns a text that names this tag: its full name, since a branch may have the same short one. */
export function tagText(tag: string): string {
  return `${FOLDERS.tag}${tag}`;
}

/** Returns the short name of a tag where it means this tag, else what `tagText` returns. */
export function shortTagText(repository: RefsOf, tag: string): string {
  return findRef(repository, tag)?.fullName === tagText(tag) ? tag : tagText(tag);
}

/** Whether the name of a branch or a tag goes on behind this text with a slash. */
export function isContinued({ entity }: RefsOf, text: string): boolean {
  const runs = refRuns(entity.state.refs);
  return Object.values(FOLDERS).some((folder) => {
    const start = `${folder}${text}/`;
    const isBehind = (name: string | undefined): boolean => name !== undefined && byRefOrder(name, start) > 0;
    const run = runs.find((refs) => isBehind(refs.at(-1)?.name));
    return run?.find(({ name }) => isBehind(name))?.name.startsWith(start) === true;
  });
}

/** Returns the full name of a branch, which need not exist. */
export function branchRef(branch: string): string {
  return `${FOLDERS.branch}${branch}`;
}

/** Returns the full name of the default branch, which need not exist. */
export function defaultBranchRef({ defaultBranch }: Pick<FoundRepository, 'defaultBranch'>): string {
  return branchRef(defaultBranch);
}

/** Returns the tip of the default branch; null while it does not exist. */
export function findDefaultBranch(repository: RefsOf): Ref | null {
  return findRef(repository, HEAD)?.ref ?? null;
}

/** Whether the text names the default branch. Without a text it is meant even if it does not exist. */
export function namesDefaultBranch(repository: RefsOf, text: string | null): boolean {
  if (isAbsent(text)) return true;
  const found = findRef(repository, text);
  return found?.fullName === defaultBranchRef(repository);
}

/** Branches that a refusal names; the others are counted. */
export const BRANCHES_NAMED_MAX = 10;

/** Why there is no default branch: nothing was pushed to any branch, or it was deleted and others are there. */
export function withoutDefaultBranch({ entity, defaultBranch }: RefsOf): Refusal {
  const branches: string[] = [];
  let others = 0;
  for (const run of refRuns(entity.state.refs)) {
    for (const { name } of run) {
      const branch = shortNameOf('branch', name);
      if (branch === undefined) continue;
      if (branches.length < BRANCHES_NAMED_MAX) branches.push(branch);
      else others += 1;
    }
  }
  if (branches.length === 0) return { code: 'repository-without-commits' };
  return { code: 'default-branch-missing', branch: defaultBranch, branches, others };
}

/**
 * Returns the commit. Refused as `resolveObject` is, and with `ref-not-a-commit` for a tag of a tree or a blob, which
 * have no history.
 */
export async function resolveRef(
  repository: FoundRepository,
  reader: ObjectReader,
  requested: string | null,
): Promise<ResolvedRef | Refused> {
  const resolved = await resolveObject(repository, reader, requested);
  if ('refused' in resolved) return resolved;
  const { name, commit, root } = resolved;
  return commit === null ? refuse({ code: 'ref-not-a-commit', type: root.type }) : { name, commit };
}

/**
 * A `requested` of null, or an empty one, is the default branch. Refused with `repository-without-commits`,
 * `default-branch-missing`, `ref-not-found` or `short-id-ambiguous`.
 */
export async function resolveObject(
  repository: FoundRepository,
  reader: ObjectReader,
  requested: string | null,
): Promise<ResolvedObject | Refused> {
  const text = isAbsent(requested) ? HEAD : requested;
  const found = findRef(repository, text);
  if (found === null && (text === HEAD || repository.entity.state.refs.size === 0)) {
    return refuse(withoutDefaultBranch(repository));
  }
  const target = found === null ? null : (found.ref.peeled ?? found.ref.id);
  const commit = target === null ? await commitNamed(repository, reader, text) : await reader.commit(target);
  if (commit !== null && 'refused' in commit) return commit;
  const root = commit === null ? await rootAt(reader, target) : { type: 'tree' as const, id: commit.tree };
  return root === null
    ? refuse({ code: 'ref-not-found' })
    : { name: answeredName(repository, requested), commit, root };
}

async function rootAt(reader: ObjectReader, target: ObjectId | null): Promise<Root | null> {
  if (target === null) return null;
  const [info] = await reader.lookup([target]);
  return info?.type === 'tree' || info?.type === 'blob' ? { type: info.type, id: target } : null;
}

/** Returns what an answer says was asked for: the text itself, else the short name of the default branch. */
export function answeredName({ defaultBranch }: RefsOf, requested: string | null): string {
  return isAbsent(requested) ? defaultBranch : requested;
}

/** An empty text is as if it were absent. */
function isAbsent(text: string | null): text is null | '' {
  return text === null || text === '';
}

/** Returns the commit with this full id, in either case, if a current ref reaches it; null otherwise. */
async function reachableCommit(
  repository: FoundRepository,
  reader: ObjectReader,
  requested: string,
): Promise<Commit | null> {
  const id = idNamed(requested);
  if (id === null) return null;
  const [info] = await reader.lookup([id]);
  if (info?.type !== 'commit') return null;
  return (await isReachedByRefs(repository, reader, id)) ? reader.commit(id) : null;
}

/**
 * Returns the commit that a full or a short id names, in either case, if a current ref reaches it; null if there is
 * none. Refused with `short-id-ambiguous` if several begin with the short one.
 */
export async function commitNamed(
  repository: FoundRepository,
  reader: ObjectReader,
  text: string,
): Promise<Commit | Refused | null> {
  const digits = shortIdNamed(text);
  if (digits === null) return reachableCommit(repository, reader, text);
  const found = await reader.startingWith(digits, SHORT_ID_OBJECTS_MAX + 1);
  const infos = await reader.lookup(found.slice(0, SHORT_ID_OBJECTS_MAX));
  const commits = infos.flatMap((info) => (info?.type === 'commit' ? [info.id] : []));
  const reached = await reachedByRefs(repository, reader, commits);
  const isUnknown = found.length > SHORT_ID_OBJECTS_MAX;
  if (reached.length > 1 || isUnknown) {
    const named = reached.slice(0, SHORT_ID_COMMITS_NAMED_MAX);
    return refuse({
      code: 'short-id-ambiguous',
      digits,
      commits: named,
      more: isUnknown || reached.length > named.length,
    });
  }
  const [only] = reached;
  return only === undefined ? null : reader.commit(only);
}

/**
 * Returns how many refs git's upload-pack finds by the name, by the rules of gitrevisions(7): it exits on a
 * `deepen-not` unless it finds one.
 */
export function countRefsToGit(repository: RefsOf, name: string): number {
  const { refs } = repository.entity.state;
  const folders = ['', FULL, FOLDERS.tag, FOLDERS.branch, 'refs/remotes/'];
  const names = [...folders.map((folder) => folder + name), `refs/remotes/${name}/HEAD`];
  const found = names.filter((text) => refNamed(refs, text) !== null).length;
  return found + (name === HEAD && findDefaultBranch(repository) !== null ? 1 : 0);
}
