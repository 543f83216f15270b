/**
 * The stored order of a branch's commits, read in pages of growing size, and kept in memory during one update.
 *
 * Invariants: no page is read twice, and no more is read than a small multiple of what is used.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import type { OrderCommit } from './commit-queue.ts';

/** The stored order from the old tip, as a projection reads it. Errors pass through. */
export interface StoredOrder {
  /** Returns commits that the old tip reaches, by id, in any order; it must find all of them. */
  commits(ids: readonly ObjectId[]): Promise<readonly OrderCommit[]>;
  /** Returns a page of the order; the tip has offset 0. Shorter than `limit` only at the end of the history. */
  fromTip(offset: number, limit: number): Promise<readonly OrderCommit[]>;
}

export interface StoredCommits {
  /**
   * Returns the commits of these ids. `depth` is how far the walk is from the tip. Throws TypeError for an unknown id.
   */
  load(ids: readonly ObjectId[], depth: number): Promise<readonly OrderCommit[]>;
  /** Returns the id at an offset from the tip; undefined beyond the end of the history. */
  at(offset: number): Promise<ObjectId | undefined>;
}

/**
 * Commits that are read together: few at first, since most lists end early. Internal: the rest is read in further
 * pages.
 */
const PAGE_COMMITS_MIN = 128;
const PAGE_COMMITS_MAX = 4_096;
/** Most parents are this close behind their child, so it is worth reading a page before single commits. */
const LOOK_AHEAD_COMMITS = 32;

/** `known` are commits that need not be read: those that the new tip adds. */
export function createStoredCommits(stored: StoredOrder, known: readonly OrderCommit[]): StoredCommits {
  const commits = new Map(known.map((commit) => [commit.id, commit]));
  const order: ObjectId[] = [];
  let pageCommits = PAGE_COMMITS_MIN;
  let isAtEnd = false;

  const readTo = async (depth: number) => {
    while (order.length < depth && !isAtEnd) {
      const read = await stored.fromTip(order.length, pageCommits);
      isAtEnd = read.length < pageCommits;
      pageCommits = Math.min(2 * pageCommits, PAGE_COMMITS_MAX);
      for (const commit of read) {
        order.push(commit.id);
        commits.set(commit.id, commit);
      }
    }
  };
  const missing = (ids: readonly ObjectId[]) => ids.filter((id) => !commits.has(id));

  return {
    async load(ids, depth) {
      // At depth 0 the walk has not reached the old order, so no page of it is read.
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
