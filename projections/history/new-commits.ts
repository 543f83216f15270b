/**
 * Finds the commits that moved tips bring: from the tips back to commits that have their row already.
 *
 * Must stay true: what is found together with what is known is closed under parents, or the walk says so by
 * throwing `MissingCommits`; so a commit with a row never has an ancestor without one. What is held in memory is
 * bounded, commits of any size included.
 */
import { commitLength } from '../../core/git/history/commit-length.ts';
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { Commit } from '../../core/ports/object-database.ts';
import { listedCommit } from './entry.ts';
import type { HistoryReader } from './git-reading.ts';

/** Objects that the repository's layers of that revision should hold, and do not. */
export class MissingCommits extends Error {
  override readonly name = 'MissingCommits';
}

/** More than may be read while others wait. */
export class TooManyCommits extends Error {
  override readonly name = 'TooManyCommits';
}

export interface NewCommits {
  /** In any order; all of them, or none when there are too many to hold. */
  readonly commits: readonly Commit[];
  /** When there are too many: how to walk them again, in bounded memory. */
  readonly walk: { readonly include: readonly ObjectId[]; readonly exclude: readonly ObjectId[] } | null;
}

export interface Search {
  readonly reader: HistoryReader;
  /** Which of the ids have their row. */
  readonly known: (ids: readonly ObjectId[]) => Promise<ReadonlySet<ObjectId>>;
  /** Where listed refs point to; tags may lead to trees and blobs, which are left out. */
  readonly tips: readonly ObjectId[];
  /** Tips that must be there; others may have left storage since. */
  readonly required: ReadonlySet<ObjectId>;
  /** Commits with rows that may bound a walk; asked for only when one is needed. */
  readonly standing: () => Promise<readonly ObjectId[]>;
  /** Throws `TooManyCommits` beyond so many; null: any number. */
  readonly commitsMax: number | null;
}

/** Steps back by reading parents before a walk of git's is worth its process. */
const STEPS_MAX = 4;
const STEP_COMMITS_MAX = 256;
/** Commits held in memory at a time. */
const HELD_COMMITS_MAX = 20_000;
/** What they take, by `weightOf`. */
const HELD_WEIGHT_MAX = 64 * 1024 * 1024;
export const READ_COMMITS_AT_ONCE = 500;
/** Each may have a message of many megabytes until it is cut. */
const UNCUT_COMMITS_AT_ONCE = 10;

export async function findNewCommits(search: Search): Promise<NewCommits> {
  const { reader, known } = search;
  const found = new Map<ObjectId, Commit>();
  const boundary = new Set<ObjectId>();
  const include = await commitTips(search);
  let frontier: readonly ObjectId[] = include;
  let weight = 0;
  for (let step = 0; frontier.length > 0; step += 1) {
    if (step === STEPS_MAX || frontier.length > STEP_COMMITS_MAX || weight > HELD_WEIGHT_MAX) {
      for (const id of await present(reader, await search.standing())) boundary.add(id);
      return walkAll(search, include, [...boundary]);
    }
    const parents = new Set<ObjectId>();
    for (const commit of await readCommits(reader, frontier)) {
      found.set(commit.id, commit);
      weight += weightOf(commit);
      for (const parent of commit.parents) parents.add(parent);
    }
    const unseen = [...parents].filter((id) => !found.has(id) && !boundary.has(id));
    const stored = await known(unseen);
    for (const id of stored) boundary.add(id);
    frontier = unseen.filter((id) => !stored.has(id));
  }
  return { commits: [...found.values()], walk: null };
}

/** The tips that are commits without a row. */
async function commitTips({ reader, known, tips, required }: Search): Promise<readonly ObjectId[]> {
  const stored = await known(tips);
  const unknown = tips.filter((id) => !stored.has(id));
  if (unknown.length === 0) return [];
  const infos = await reader.lookup(unknown);
  return unknown.filter((id, index) => {
    const info = infos[index] ?? null;
    if (info === null && required.has(id)) throw new MissingCommits(`Object ${id} is in no layer`);
    return info?.type === 'commit';
  });
}

/** Tips that were forced away may have left storage since: git would refuse to walk from them. */
async function present(reader: HistoryReader, ids: readonly ObjectId[]): Promise<readonly ObjectId[]> {
  const infos = await reader.lookup(ids);
  return ids.filter((_, index) => infos[index]?.type === 'commit');
}

/** As much of each as its row holds. */
export async function readCommits(reader: HistoryReader, ids: readonly ObjectId[]): Promise<readonly Commit[]> {
  const found: Commit[] = [];
  for (let at = 0; at < ids.length; at += UNCUT_COMMITS_AT_ONCE) {
    const some = ids.slice(at, at + UNCUT_COMMITS_AT_ONCE);
    const commits = await reader.commits(some);
    for (const [index, id] of some.entries()) {
      const commit = commits[index] ?? null;
      if (commit === null) throw new MissingCommits(`Commit ${id} is in no layer`);
      found.push(listedCommit(commit));
    }
  }
  return found;
}

/** About the bytes of memory that a commit's row takes. */
function weightOf(commit: Commit): number {
  return 500 + commitLength(commit);
}

async function walkAll(
  { reader, commitsMax }: Search,
  include: readonly ObjectId[],
  exclude: readonly ObjectId[],
): Promise<NewCommits> {
  const held = commitsMax ?? HELD_COMMITS_MAX;
  const ids: ObjectId[] = [];
  for await (const id of reader.walk({ include, exclude, limit: held + 1 })) ids.push(id);
  if (ids.length > held) {
    if (commitsMax !== null) throw new TooManyCommits(`More than ${commitsMax} new commits`);
    return { commits: [], walk: { include, exclude } };
  }
  const commits: Commit[] = [];
  let weight = 0;
  for (let at = 0; at < ids.length; at += READ_COMMITS_AT_ONCE) {
    for (const commit of await readCommits(reader, ids.slice(at, at + READ_COMMITS_AT_ONCE))) {
      commits.push(commit);
      weight += weightOf(commit);
    }
    if (weight <= HELD_WEIGHT_MAX) continue;
    if (commitsMax !== null) throw new TooManyCommits(`New commits of more than ${HELD_WEIGHT_MAX} bytes`);
    return { commits: [], walk: { include, exclude } };
  }
  return { commits, walk: null };
}
