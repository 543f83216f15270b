/**
 * Finds the new commits that moved tips reach: from the tips back to commits that already have a row.
 *
 * Invariants: the found and the stored commits together are closed under parents, or the search throws
 * `MissingCommits`; so a commit with a row never has an ancestor without one. The memory in use is bounded, whatever
 * the number and size of the commits.
 */
import { listedCommit } from '../../core/git/history/listed-commit.ts';
import type { Commit } from '../../core/git/objects.ts';
import type { ObjectId } from '../../core/kernel/ids.ts';
import { readCommits } from '../../core/ports/read-commits.ts';
import type { HistoryReader } from './git-reading.ts';
import { BatchTooHeavy, type MemoryShare, TooMuchWork, weightOf } from './work-bounds.ts';
/** The repository's layers at this revision should hold the objects, but do not. */
export class MissingCommits extends Error {
  override readonly name = 'MissingCommits';
}

export interface NewCommits {
  /** All new commits in any order, or none if they are too many to hold in memory. */
  readonly commits: readonly Commit[];
  /** Set if there are too many: how to walk them again in bounded memory. */
  readonly walk: { readonly include: readonly ObjectId[]; readonly exclude: readonly ObjectId[] } | null;
}

export interface Search {
  readonly reader: HistoryReader;
  /** Returns which of the ids have a row. */
  readonly known: (ids: readonly ObjectId[]) => Promise<ReadonlySet<ObjectId>>;
  /** The objects that branches and tags point to; those that are trees or blobs are skipped. */
  readonly tips: readonly ObjectId[];
  /** The tips that must exist; others may have left storage since. */
  readonly required: ReadonlySet<ObjectId>;
  /** Returns commits with rows that can bound a walk; called only when a walk is needed. */
  readonly storedTips: () => Promise<readonly ObjectId[]>;
  /**
   * The limit of new commits: more of them, or too much memory, throw `TooMuchWork`; null: no limit, written piece by
   * piece.
   */
  readonly commitsMax: number | null;
  readonly memory: MemoryShare;
}

/**
 * The number of steps that read parents before a walk by git is worth its process. Internal: both ways find the same
 * commits.
 */
const STEPS_MAX = 4;
const STEP_COMMITS_MAX = 256;
/** The number of commits held in memory at a time. Internal: the rest is written in further pieces. */
const HELD_COMMITS_MAX = 20_000;

export async function findNewCommits(search: Search): Promise<NewCommits> {
  const { reader, known, memory } = search;
  const found = new Map<ObjectId, Commit>();
  const boundary = new Set<ObjectId>();
  const include = await commitTips(search);
  let frontier: readonly ObjectId[] = include;
  for (let step = 0; frontier.length > 0; step += 1) {
    if (step === STEPS_MAX || frontier.length > STEP_COMMITS_MAX) {
      memory.giveBack();
      for (const id of await present(reader, await search.storedTips())) boundary.add(id);
      return walkAll(search, include, [...boundary]);
    }
    const parents = new Set<ObjectId>();
    for await (const commit of readListedCommits(reader, frontier)) {
      if (!memory.take(weightOf(commit))) {
        for (const id of await present(reader, await search.storedTips())) boundary.add(id);
        return tooHeavy(search, include, [...boundary]);
      }
      found.set(commit.id, commit);
      for (const parent of commit.parents) parents.add(parent);
    }
    const unseen = [...parents].filter((id) => !found.has(id) && !boundary.has(id));
    const stored = await known(unseen);
    for (const id of stored) boundary.add(id);
    frontier = unseen.filter((id) => !stored.has(id));
  }
  return { commits: [...found.values()], walk: null };
}

/** Returns the tips that are commits and have no row. */
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

/**
 * Returns the ids that exist: forced-away tips may have left storage since, and git refuses to walk from a missing one.
 */
async function present(reader: HistoryReader, ids: readonly ObjectId[]): Promise<readonly ObjectId[]> {
  const infos = await reader.lookup(ids);
  return ids.filter((_, index) => infos[index]?.type === 'commit');
}

/** Yields the commits one after another, each cut to what its row holds. */
export async function* readListedCommits(reader: HistoryReader, ids: readonly ObjectId[]): AsyncGenerator<Commit> {
  for await (const [id, commit] of readCommits(reader, ids)) {
    if (commit === null) throw new MissingCommits(`Commit ${id} is in no layer`);
    yield listedCommit(commit);
  }
}

async function walkAll(
  search: Search,
  include: readonly ObjectId[],
  exclude: readonly ObjectId[],
): Promise<NewCommits> {
  const { reader, commitsMax, memory } = search;
  const countMax = commitsMax ?? HELD_COMMITS_MAX;
  const ids: ObjectId[] = [];
  for await (const id of reader.walk({ include, exclude, limit: countMax + 1 })) ids.push(id);
  if (ids.length > countMax) {
    if (commitsMax !== null) throw new TooMuchWork(`More than ${commitsMax} new commits`);
    return { commits: [], walk: { include, exclude } };
  }
  const commits: Commit[] = [];
  for await (const commit of readListedCommits(reader, ids)) {
    if (!memory.take(weightOf(commit))) return tooHeavy(search, include, exclude);
    commits.push(commit);
  }
  return { commits, walk: null };
}

/** Ends the search because what was read so far fills the memory of a batch. */
function tooHeavy(
  { commitsMax, memory }: Search,
  include: readonly ObjectId[],
  exclude: readonly ObjectId[],
): NewCommits {
  const takesMost = memory.takesMost();
  memory.giveBack();
  if (commitsMax === null) return { commits: [], walk: { include, exclude } };
  if (takesMost) throw new TooMuchWork('Its new commits take too much memory to be held');
  throw new BatchTooHeavy('The new commits of several repositories take too much memory to be held together');
}
