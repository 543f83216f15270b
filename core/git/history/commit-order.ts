/**
 * Updates a branch's stored order of commits when its tip moves, without walking its whole history again.
 *
 * Invariants: the update, applied to the old order, gives exactly git's default order from the new tip.
 *
 * Two walks run in parallel, from the new tip and from the old one. The commits that a walk has not popped yet depend
 * only on its queue, and on which of the commits that the queue reaches it has seen. No commit that both tips reach
 * leads to a commit that only one tip reaches. So as soon as both walks have popped the same common commits and their
 * queues are equal, including the order, the rest of both orders is equal: only the commits popped so far differ. In
 * most cases, nothing of the old order was popped then and both queues hold only the old tip: a plain prepend.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import { type CommitQueue, createCommitQueue, type OrderCommit } from './commit-queue.ts';
import { createStoredCommits, type StoredCommits, type StoredOrder } from './stored-commits.ts';

/**
 * A branch's order of commits is rebuilt instead of spliced if the change goes deeper than this. Internal: both ways
 * give the same order.
 */
const COMMIT_SPLICE_DEPTH_MAX = 10_000;

export interface TipMove {
  readonly oldTip: ObjectId;
  readonly newTip: ObjectId;
  /** All commits that the new tip reaches and the old tip does not, in any order. */
  readonly gained: readonly OrderCommit[];
  /**
   * All commits that the old tip reaches and the new tip does not: none for a fast-forward. For other moves the caller
   * may pass none too, if it prefers a rebuild to finding them.
   */
  readonly dropped: readonly ObjectId[];
  /** How many commits of the old order an update may replace; beyond it, the result is a rebuild. */
  readonly depthMax?: number;
}

export type OrderUpdate =
  /** Put these before the old order, newest first. */
  | { readonly kind: 'prepend'; readonly commits: readonly ObjectId[] }
  /** Replace the first `replaced` commits of the old order by these, newest first. */
  | { readonly kind: 'splice'; readonly replaced: number; readonly commits: readonly ObjectId[] }
  | { readonly kind: 'rebuild'; readonly reason: RebuildReason };

export type RebuildReason =
  /** The old tip is no ancestor of the new one, and the caller passed no dropped commits. */
  | 'not-an-ancestor'
  /** The orders differ beyond `depthMax`. */
  | 'too-deep'
  /** The stored order is not the one that git gives, or the gained and dropped commits do not match it. */
  | 'inconsistent';

/** Returns how the stored order has to change. Reads it only as far as the change reaches. */
export async function updateOrder(move: TipMove, stored: StoredOrder): Promise<OrderUpdate> {
  if (move.newTip === move.oldTip) return { kind: 'prepend', commits: [] };
  const isFastForward = move.gained.some(({ parents }) => parents.includes(move.oldTip));
  if (!isFastForward && move.dropped.length === 0) return { kind: 'rebuild', reason: 'not-an-ancestor' };
  const commits = createStoredCommits(stored, move.gained);
  const walks = await startWalks(move, commits);
  const stopped = await meet(walks, commits, move.depthMax ?? COMMIT_SPLICE_DEPTH_MAX);
  if (stopped !== null) return { kind: 'rebuild', reason: stopped };
  const replaced = walks.old.popped.length;
  const before = walks.young.popped;
  return replaced === 0 ? { kind: 'prepend', commits: before } : { kind: 'splice', replaced, commits: before };
}

interface Walk {
  readonly queue: CommitQueue;
  /** The ids in the queue, to compare queues without sorting. */
  readonly queued: Set<ObjectId>;
  readonly popped: ObjectId[];
  /** The popped commits that both tips reach. */
  readonly common: Set<ObjectId>;
  /** The commits that only this walk's tip reaches. */
  readonly own: ReadonlySet<ObjectId>;
}

interface Walks {
  readonly young: Walk;
  readonly old: Walk;
  /** How many commits are in only one of the queues, plus how many common commits only one walk has popped. */
  differences: number;
}

async function startWalks(move: TipMove, commits: StoredCommits): Promise<Walks> {
  const gained = new Set(move.gained.map(({ id }) => id));
  // One read for all commits of the old history that the gained commits name.
  const touched = new Set([move.oldTip, move.newTip, ...move.gained.flatMap(({ parents }) => parents)]);
  await commits.load([...touched.difference(gained)], 0);
  const walks: Walks = { young: newWalk(gained), old: newWalk(new Set(move.dropped)), differences: 0 };
  see(walks, walks.young, walks.old, await commits.load([move.newTip], 0));
  see(walks, walks.old, walks.young, await commits.load([move.oldTip], 0));
  return walks;
}

function newWalk(own: ReadonlySet<ObjectId>): Walk {
  return { queue: createCommitQueue(), queued: new Set(), popped: [], common: new Set(), own };
}

/** Steps both walks until their queues are equal. Returns null then, or why that cannot be reached. */
async function meet(walks: Walks, commits: StoredCommits, depthMax: number): Promise<RebuildReason | null> {
  const { young, old } = walks;
  const isTooDeep = () => old.popped.length > depthMax;
  // Comparing queues takes time in proportion to their length. This bounds it by the time of the walks, so that a
  // hostile
  // history cannot make it larger.
  let comparisonsLeft = 64 * (depthMax + 1);
  for (;;) {
    // A commit that only the old tip reaches is never in both queues, and the loop below does not pop it from the old
    // one.
    while (isNextOwn(old) && !isTooDeep()) await pop(walks, old, young, commits);
    if (isTooDeep() || comparisonsLeft < 0) return 'too-deep';
    if (walks.differences === 0) {
      if (sameIds(young.queue.ids(), old.queue.ids())) return checkStored(old.popped, commits);
      comparisonsLeft -= old.queue.size;
    }
    if (young.queue.size === 0) return 'inconsistent';
    await pop(walks, young, old, commits);
    while (old.common.size < young.common.size && !isTooDeep()) {
      if (old.queue.size === 0) return 'inconsistent';
      await pop(walks, old, young, commits);
    }
  }
}

function isNextOwn({ queue, own }: Walk): boolean {
  return queue.next !== undefined && own.has(queue.next.id);
}

async function pop(walks: Walks, walk: Walk, other: Walk, commits: StoredCommits): Promise<void> {
  const commit = walk.queue.pop();
  if (commit === undefined) return;
  walk.queued.delete(commit.id);
  walks.differences += other.queued.has(commit.id) ? 1 : -1;
  walk.popped.push(commit.id);
  if (!walk.own.has(commit.id)) {
    walk.common.add(commit.id);
    walks.differences += other.common.has(commit.id) ? -1 : 1;
  }
  see(walks, walk, other, await commits.load(commit.parents, walks.old.popped.length));
}

function see(walks: Walks, walk: Walk, other: Walk, seen: readonly OrderCommit[]): void {
  for (const commit of seen) {
    if (!walk.queue.see(commit)) continue;
    walk.queued.add(commit.id);
    walks.differences += other.queued.has(commit.id) ? -1 : 1;
  }
}

/** Compares the old walk with the stored order: if they differ, the rest of the stored order may be wrong too. */
async function checkStored(popped: readonly ObjectId[], commits: StoredCommits): Promise<'inconsistent' | null> {
  for (const [offset, id] of popped.entries()) {
    if ((await commits.at(offset)) !== id) return 'inconsistent';
  }
  return null;
}

function sameIds(a: readonly ObjectId[], b: readonly ObjectId[]): boolean {
  return a.length === b.length && a.every((id, index) => id === b[index]);
}
