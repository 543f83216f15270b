/**
 * git's queue of commits, which determines the order of `git log` and `git rev-list`.
 *
 * Invariants: the newest commit date leaves first; equal dates leave in the order of arrival (git's
 * commit_list_insert_by_date). A commit enters once, when it is first seen. Parents enter in the order in which their
 * child lists them.
 */
import type { ObjectId } from '../../kernel/ids.ts';

/** The parts of a commit that determine the order. */
export interface OrderCommit {
  readonly id: ObjectId;
  readonly parents: readonly ObjectId[];
  /** The committer's date in seconds since the epoch, as git parses it. */
  readonly seconds: number;
}

/** A queue that never accepts a commit twice, not even after it was popped. */
export interface CommitQueue {
  /** Adds a commit unless it was seen before; returns whether it was added. */
  see(commit: OrderCommit): boolean;
  /** The commit that `pop` would return; it stays in the queue. */
  readonly next: OrderCommit | undefined;
  pop(): OrderCommit | undefined;
  readonly size: number;
  /** Returns the ids in the queue, in the order in which they would leave it if no more were added. */
  ids(): readonly ObjectId[];
}

interface Entry {
  readonly commit: OrderCommit;
  readonly arrival: number;
}

export function createCommitQueue(): CommitQueue {
  const heap: Entry[] = [];
  const seen = new Set<ObjectId>();
  return {
    see(commit) {
      if (seen.has(commit.id)) return false;
      heap.push({ commit, arrival: seen.size });
      seen.add(commit.id);
      rise(heap, heap.length - 1);
      return true;
    },
    get next() {
      return heap[0]?.commit;
    },
    pop() {
      const top = heap[0];
      const last = heap.pop();
      if (top === undefined || last === undefined) return undefined;
      if (heap.length > 0) {
        heap[0] = last;
        sink(heap, 0);
      }
      return top.commit;
    },
    get size() {
      return heap.length;
    },
    ids: () => heap.toSorted((a, b) => (isBefore(a, b) ? -1 : 1)).map(({ commit }) => commit.id),
  };
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.commit.seconds === b.commit.seconds ? a.arrival < b.arrival : a.commit.seconds > b.commit.seconds;
}

function rise(heap: Entry[], from: number): void {
  let at = from;
  while (at > 0) {
    const parent = (at - 1) >>> 1;
    if (!swapIfBefore(heap, at, parent)) return;
    at = parent;
  }
}

function sink(heap: Entry[], from: number): void {
  let at = from;
  for (;;) {
    const left = heap[2 * at + 1];
    const right = heap[2 * at + 2];
    if (left === undefined) return;
    const child = right !== undefined && isBefore(right, left) ? 2 * at + 2 : 2 * at + 1;
    if (!swapIfBefore(heap, child, at)) return;
    at = child;
  }
}

/** Swaps the heap entries of a child and its parent if the child's leaves the queue earlier; returns whether it did. */
function swapIfBefore(heap: Entry[], child: number, parent: number): boolean {
  const lower = heap[child];
  const upper = heap[parent];
  if (lower === undefined || upper === undefined || !isBefore(lower, upper)) return false;
  heap[child] = upper;
  heap[parent] = lower;
  return true;
}

/**
 * Yields every commit that the tips reach in git's default order; tips of equal date in the order passed.
 * `commit` must know every commit that is reached; its errors pass through.
 */
export function* commitOrder(
  tips: readonly ObjectId[],
  commit: (id: ObjectId) => OrderCommit,
): Generator<ObjectId, void, undefined> {
  const queue = createCommitQueue();
  for (const tip of tips) queue.see(commit(tip));
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    for (const parent of next.parents) queue.see(commit(parent));
    yield next.id;
  }
}
