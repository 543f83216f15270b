/**
 * The stored order of a branch's commits, read in stretches that grow, and kept for the time of one update.
 *
 * Must stay true: nothing is read twice, and reading goes no further than a small multiple of what is used.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import type { OrderCommit } from './commit-queue.ts';

/** The stored order of the old tip, as a projection reads it. Errors pass through. */
export interface StoredOrder {
  /** Commits the old tip reaches, by id, in any order; all of them must be there. */
  commits(ids: readonly ObjectId[]): Promise<readonly OrderCommit[]>;
  /** A stretch of the order: the tip has offset 0. Shorter than `limit` only at the root's end. */
  fromTip(offset: number, limit: number): Promise<readonly OrderCommit[]>;
}

export interface StoredCommits {
  /** The commits of these ids; `depth` is how far from the tip they are needed. Throws on an id that is nowhere. */
  load(ids: readonly ObjectId[], depth: number): Promise<readonly OrderCommit[]>;
  /** Which commit stands so far from the tip; undefined beyond the root's end. */
  at(offset: number): Promise<ObjectId | undefined>;
}

const STRETCH_COMMITS_MIN = 128;
const STRETCH_COMMITS_MAX = 4_096;
/** Parents mostly stand this close behind their child, so a stretch is worth reading before single commits are. */
const LOOK_AHEAD_COMMITS = 32;

/** `known` are commits that need no reading: those the new tip brings. */
export function createStoredCommits(stored: StoredOrder, known: readonly OrderCommit[]): StoredCommits {
  const commits = new Map(known.map((commit) => [commit.id, commit]));
  const order: ObjectId[] = [];
  let stretch = STRETCH_COMMITS_MIN;
  let isAtEnd = false;

  const readTo = async (depth: number) => {
    while (order.length < depth && !isAtEnd) {
      const read = await stored.fromTip(order.length, stretch);
      isAtEnd = read.length < stretch;
      stretch = Math.min(2 * stretch, STRETCH_COMMITS_MAX);
      for (const commit of read) {
        order.push(commit.id);
        commits.set(commit.id, commit);
      }
    }
  };
  const missing = (ids: readonly ObjectId[]) => ids.filter((id) => !commits.has(id));

  return {
    async load(ids, depth) {
      // Depth 0 is where nothing of the old order is touched: then no stretch of it is read either.
      if (depth > 0 && missing(ids).length > 0) await readTo(depth + LOOK_AHEAD_COMMITS);
      const wanted = missing(ids);
      const read = wanted.length === 0 ? [] : await stored.commits(wanted);
      for (const commit of read) commits.set(commit.id, commit);
      return ids.map((id) => {
        const commit = commits.get(id);
        if (commit === undefined) throw new TypeError(`Commit ${id} is missing from the stored order`);
        return commit;
      });
    },
    async at(offset) {
      await readTo(offset + 1);
      return order[offset];
    },
  };
}
