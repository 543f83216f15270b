/**
 * git's queue of commits, and the order of `git log` and `git rev-list` that it gives.
 *
 * Must stay true: newest commit date first, equal dates first in, first out (git's commit_list_insert_by_date);
 * a commit enters once, when it is first seen, and parents enter in the order their child names them.
 */
import type { ObjectId } from '../../kernel/ids.ts';

/** What of a commit decides the order. */
export interface OrderCommit {
  readonly id: ObjectId;
  readonly parents: readonly ObjectId[];
  /** The committer's date in seconds since the epoch, as git parses it. */
  readonly seconds: number;
}

/** A queue that never takes a commit twice, not even after it was popped. */
export interface CommitQueue {
  /** Takes a commit unless it was seen before; answers whether it did. */
  see(commit: OrderCommit): boolean;
  /** The next commit, left in the queue. */
  readonly next: OrderCommit | undefined;
  pop(): OrderCommit | undefined;
  readonly size: number;
  /** The ids in the queue in the order they would leave it if no more came. */
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

/** Puts the entry of a child in its parent's place if it leaves the queue earlier. */
function swapIfBefore(heap: Entry[], child: number, parent: number): boolean {
  const lower = heap[child];
  const upper = heap[parent];
  if (lower === undefined || upper === undefined || !isBefore(lower, upper)) return false;
  heap[child] = upper;
  heap[parent] = lower;
  return true;
}

/**
 * Every commit the tips reach in git's default order, the first tip's first among tips of one date.
 * `commit` must know every commit that is reached; what it throws passes through.
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
