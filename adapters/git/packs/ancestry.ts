/**
 * Whether one commit is an ancestor of another: in process where they are near each other, else by git.
 *
 * Invariants: an answer is exact, since it is recorded whether a push forced a ref. What the moves of one push cost
 * is bounded, whatever ids its commands name; git dies with the request.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { HISTORY_READ_CPU_SECONDS_MAX } from '../../../core/kernel/limits.ts';
import { ObjectDatabaseError, type RefMove } from '../../../core/ports/object-database.ts';
import { commandError, type Git, type GitCommand, type ObjectView } from '../process/git-commands.ts';
import { readInTurn } from './object-graph.ts';
import { parseCommitLinks } from './object-parsing.ts';
import type { ObjectSource } from './object-source.ts';

/**
 * Different moves of refs, of one push, that git compares because they are far: each takes a process. Those that are
 * near are found by walks, of a bounded number of commits in all. And the time for all that git compares.
 */
export const PUSH_MOVES_FAR_MAX = 10_000;
export const PUSH_MOVES_WALKED_MAX = 100_000;
export const PUSH_COMPARING_MS_MAX = 5 * 60_000;

/** The same objects for reads in process and for reads by git. */
export interface ObjectAccess {
  readonly source: ObjectSource;
  readonly view: ObjectView;
}

/**
 * Most that `isAncestorNearby` reads in process: that takes about as long as starting git. Internal: git decides what
 * is farther.
 */
const WALKED_COMMITS_MAX = 256;
const WALKED_BYTES_MAX = 4 * 1024 * 1024;
/** Commits between which others have the event loop. */
const TURN_COMMITS = 64;

/** Commits that walks may still read; each takes from it. */
export interface WalkBudget {
  commits: number;
}

export async function isAncestor(
  git: Pick<Git, 'run'>,
  { source, view }: ObjectAccess,
  { before, after }: RefMove,
): Promise<boolean> {
  const near = await isAncestorNearby(source, before, after);
  return near ?? (await isAncestorByGit(git, view, { before, after }));
}

/**
 * Returns for each move of a ref whether `after` reaches `before`; or the refusal of a push whose moves would take too
 * long to compare.
 */
export async function compareMoves(
  git: Pick<Git, 'run'>,
  { source, view }: ObjectAccess,
  moves: readonly RefMove[],
  signal: AbortSignal,
): Promise<readonly boolean[] | PackRefusal> {
  const keyOf = ({ before, after }: RefMove) => `${before} ${after}`;
  // A push may move many refs alike.
  const distinct = new Map(moves.map((move) => [keyOf(move), move]));
  const known = new Map<string, boolean>();
  const budget: WalkBudget = { commits: PUSH_MOVES_WALKED_MAX };
  const far: RefMove[] = [];
  await readInTurn([...distinct.values()], async (move) => {
    signal.throwIfAborted();
    const near = await isAncestorNearby(source, move.before, move.after, budget);
    if (near === null && (await isCommit(source, move.before))) far.push(move);
    else known.set(keyOf(move), near ?? false);
  });
  if (far.length > PUSH_MOVES_FAR_MAX) return tooManyMoves(far.length);
  const endsAt = performance.now() + PUSH_COMPARING_MS_MAX;
  for (const move of far) {
    const wallMsMax = endsAt - performance.now();
    if (wallMsMax <= 0) return TOOK_TOO_LONG;
    try {
      known.set(keyOf(move), await isAncestorByGit(git, view, move, { signal, wallMsMax }));
    } catch (error) {
      if (!(error instanceof ObjectDatabaseError) || error.code !== 'reading-too-costly') throw error;
      return TOOK_TOO_LONG;
    }
  }
  return moves.map((move) => known.get(keyOf(move)) ?? false);
}

/** No commit reaches anything else by its parents. The id may be any that the client made up. */
async function isCommit(source: ObjectSource, id: ObjectId): Promise<boolean> {
  return (await source.type(id)) === 'commit';
}

function tooManyMoves(far: number): PackRefusal {
  const detail = `the push moves refs far in ${far} different ways, at most ${PUSH_MOVES_FAR_MAX} are allowed: push fewer refs in one push`;
  return { refused: 'pack-too-costly', detail };
}

const TOOK_TOO_LONG: PackRefusal = {
  refused: 'pack-too-costly',
  detail: 'comparing where the refs are moved took too long: push fewer refs in one push',
};

async function isAncestorByGit(
  git: Pick<Git, 'run'>,
  view: ObjectView,
  { before, after }: RefMove,
  running: Pick<GitCommand, 'signal' | 'wallMsMax'> = { wallMsMax: PUSH_COMPARING_MS_MAX },
): Promise<boolean> {
  const cpuMsMax = () => HISTORY_READ_CPU_SECONDS_MAX * 1_000;
  const command: GitCommand = { args: ['merge-base', '--is-ancestor', before, after], view, cpuMsMax, ...running };
  const end = await git.run(command);
  if (end.code === 0) return true;
  if (end.code === 1) return false;
  throw commandError(command, end);
}

/**
 * Whether `ancestor` is reached from `descendant` (a commit reaches itself); null when the walk gets too long and is
 * left to git. Walks the newest commit first, but never stops because of a date: it ends when it finds the ancestor or
 * has no commits left.
 */
export async function isAncestorNearby(
  source: ObjectSource,
  ancestor: ObjectId,
  descendant: ObjectId,
  budget: WalkBudget = { commits: WALKED_COMMITS_MAX },
): Promise<boolean | null> {
  if (ancestor === descendant) return true;
  const seen = new Set<ObjectId>();
  let pending: { readonly id: ObjectId; readonly seconds: number; readonly parents: readonly ObjectId[] }[] = [];
  let bytes = 0;
  /** Returns false if it was one too many. It is called before each read: a commit may have a thousand parents. */
  const add = async (id: ObjectId): Promise<boolean> => {
    if (seen.size >= WALKED_COMMITS_MAX || bytes > WALKED_BYTES_MAX || budget.commits <= 0) return false;
    seen.add(id);
    budget.commits -= 1;
    if (seen.size % TURN_COMMITS === 0) await nextTurn();
    const object = await source.read(id);
    bytes += object?.bytes.length ?? 0;
    if (object?.type === 'commit') pending.push({ id, ...parseCommitLinks(object.bytes) });
    return true;
  };
  try {
    if (!(await add(descendant))) return null;
    while (pending.length > 0) {
      const newest = pending.reduce((a, b) => (b.seconds > a.seconds ? b : a));
      pending = pending.filter((commit) => commit !== newest);
      if (newest.parents.includes(ancestor)) return true;
      for (const parent of newest.parents) if (!seen.has(parent) && !(await add(parent))) return null;
    }
    return false;
  } catch (error) {
    if (error instanceof ObjectDatabaseError && error.code === 'object-too-large') return null;
    throw error;
  }
}
