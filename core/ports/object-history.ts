/**
 * Walks and comparisons of one repository's commits, by native git.
 *
 * Invariants: each call is bounded in time and ends with the request that it serves. Few run at the same time, so that
 * pages leave git and the API unharmed. A call whose time is up throws `reading-too-costly`; what it yielded before is
 * right.
 */
import type { ObjectId } from '../kernel/ids.ts';
import type { Page } from '../kernel/page.ts';

export interface CommitLinks {
  readonly id: ObjectId;
  readonly parents: readonly ObjectId[];
}

/** How a call is bounded. */
export interface Bounded {
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  readonly spanMs: number;
}

/** What is told of each difference. */
export type DiffDetail =
  /** Which files differ. */
  | 'records'
  /** How many lines each has more and less; without the records. */
  | 'counts'
  /** Which files differ, then the lines of each. */
  | 'patches';

export interface DiffOptions {
  /** `patches` by default. */
  readonly detail?: DiffDetail;
  /** Equal lines around those that differ; 3 by default. */
  readonly context?: number;
  /** Whether lines that differ in white space alone are equal. A file without other lines has no patch. */
  readonly ignoresWhiteSpace?: boolean;
}

export interface AheadBehind {
  /** Commits that only the first tip reaches. */
  readonly ahead: number;
  /** Commits that only the second tip reaches. */
  readonly behind: number;
}

/** Which commits are found: those that meet all that is not null. */
export interface CommitFilter {
  /** Commits that changed what is at this path: raw bytes, names separated by slashes. */
  readonly path: Uint8Array | null;
  /** A part of the author's `name <address>`, and of a line of the message, in any case; without NUL and line feeds. */
  readonly author: string | null;
  readonly text: string | null;
  /** The first and the last second since 1970 in which a commit was made; not negative. */
  readonly sinceSeconds: number | null;
  readonly untilSeconds: number | null;
}

export interface ObjectHistory {
  /**
   * Streams what changed between two commits or trees; null is the empty tree. The bytes are those of `git diff-tree -r
   * -z --raw -p --full-index`, with renames found (core/git/diff/diff-parser.ts), or of `git diff-tree -r -z --numstat`
   * (core/git/diff/line-counts.ts).
   */
  diff(from: ObjectId | null, to: ObjectId, bounded: Bounded & DiffOptions): AsyncIterable<Uint8Array>;
  /** Streams how two blobs differ, as `diff` streams the record and the patch of one file. */
  diffOfBlobs(from: ObjectId, to: ObjectId, bounded: Bounded & DiffOptions): AsyncIterable<Uint8Array>;
  /** Yields the commits that `tip` reaches and the filter finds, newest first, as `git log -- <path>` chooses them. */
  findCommits(tip: ObjectId, filter: CommitFilter, bounded: Bounded): AsyncIterable<readonly ObjectId[]>;
  /**
   * Streams the commits that `tip` reaches and `exclude` does not, newest first, each with the records of what it
   * changed at and below the paths (everywhere if one is empty). Of a merge only what differs from all parents. The
   * bytes are those of `git log -z --raw -t -c --format=%H -- <paths>` (core/git/history/last-changes.ts). A path that
   * git cannot be asked for is left out.
   */
  changesBelow(
    tip: ObjectId,
    exclude: readonly ObjectId[],
    paths: readonly Uint8Array[],
    bounded: Bounded,
  ): AsyncIterable<Uint8Array>;
  /**
   * Streams which commits brought the first lines of the file at this path of the commit `tip`, which must have a line.
   * The bytes are those of `git blame --incremental -L1,<lines> -- <path>` (core/git/blame.ts).
   */
  blame(tip: ObjectId, path: Uint8Array, lines: number, bounded: Bounded): AsyncIterable<Uint8Array>;
  /** Yields the commits that `include` reaches and `exclude` does not, children before parents. */
  links(
    include: readonly ObjectId[],
    exclude: readonly ObjectId[],
    bounded: Bounded,
  ): AsyncIterable<readonly CommitLinks[]>;
  /** Returns commits that `tip` reaches and `exclude` does not, in the order of `git log`. */
  commitsBetween(exclude: ObjectId, tip: ObjectId, page: Page, bounded: Bounded): Promise<readonly ObjectId[]>;
  /** Counts the commits that only one of the two reaches. */
  aheadBehind(a: ObjectId, b: ObjectId, bounded: Bounded): Promise<AheadBehind>;
  /** Returns the best common ancestor; null if there is none. */
  mergeBase(a: ObjectId, b: ObjectId, bounded: Bounded): Promise<ObjectId | null>;
}
