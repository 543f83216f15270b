/**
 * The limits of the work for one repository: memory, counted in bytes commit by commit, and time.
 *
 * Invariants: one counter covers the memory of a whole batch, so that many repositories together use no more than
 * one may. Work that exceeds a limit throws an error of its own kind, so that no other repository waits for it.
 */
import { commitLength } from '../../core/git/history/commit-length.ts';
import type { StoredOrder } from '../../core/git/history/stored-commits.ts';
import type { Commit } from '../../core/git/objects.ts';
import { MIB } from '../../core/kernel/byte-units.ts';

/**
 * The memory for commits that the read model of histories has not written yet, for all repositories together. Internal:
 * further work waits.
 */
const HISTORY_HELD_BYTES_MAX = 64 * MIB;
/**
 * The work for one repository that the others wait for; longer work runs concurrently with theirs. Internal: longer
 * work runs beside the others.
 */
const HISTORY_TURN_COMMITS_MAX = 10_000;
const HISTORY_TURN_ORDERED_COMMITS_MAX = 100_000;
const HISTORY_TURN_SPAN_MS = 3_000;
/**
 * The limits of work for one repository that runs concurrently with that for others: beyond them the repository is
 * parked. The largest histories have a million commits.
 */
export const HISTORY_ORDERED_COMMITS_MAX = 3_000_000;
export const HISTORY_SPAN_MS = 30 * 60_000;

export interface WorkBounds {
  /**
   * New commits that are read; null: any number, because they are written piece by piece if memory cannot hold them.
   */
  readonly newCommits: number | null;
  /** Commits of a default branch that are put in order. */
  readonly orderedCommits: number;
  /** The memory for all repositories of a batch. */
  readonly memoryBytes: number;
  readonly spanMs: number;
}

/** The limits while other streams wait. */
export const TURN_BOUNDS: WorkBounds = {
  newCommits: HISTORY_TURN_COMMITS_MAX,
  orderedCommits: HISTORY_TURN_ORDERED_COMMITS_MAX,
  memoryBytes: HISTORY_HELD_BYTES_MAX,
  spanMs: HISTORY_TURN_SPAN_MS,
};

/** The limits of replays beside the writer, and of rebuilds. */
export const PATIENT_BOUNDS: WorkBounds = {
  newCommits: null,
  orderedCommits: HISTORY_ORDERED_COMMITS_MAX,
  memoryBytes: HISTORY_HELD_BYTES_MAX,
  spanMs: HISTORY_SPAN_MS,
};

/** One repository's work exceeded a limit; the message says which. */
export class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork';
}

/** The repositories of a batch together take too much memory: the writer then applies each append separately. */
export class BatchTooHeavy extends Error {
  override readonly name = 'BatchTooHeavy';
}

/** Counts the bytes that a batch holds in memory, against a limit. */
export class MemoryBudget {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Opens the account of one repository. */
  share(): MemoryShare {
    let own = 0;
    return {
      take: (bytes) => {
        own += bytes;
        this.#bytes += bytes;
        return this.#bytes <= this.#bytesMax;
      },
      giveBack: () => {
        this.#bytes -= own;
        own = 0;
      },
      takesMost: () => own * 2 > this.#bytesMax,
    };
  }
}

export interface MemoryShare {
  /** Adds bytes; returns false if the batch now holds more than it may. */
  take(bytes: number): boolean;
  giveBack(): void;
  /** Returns whether this repository alone takes more than half of the batch's limit. */
  takesMost(): boolean;
}

/** Returns roughly the bytes of memory that a commit takes between its reading and the writing of its row. */
export function weightOf(commit: Commit): number {
  return 500 + commitLength(commit);
}

/** The memory of a commit of which only date and parents are held. */
const ORDERED_COMMIT_BYTES = 200;
const PARENT_BYTES = 64;

/** Wraps the stored order of a branch: throws `TooMuchWork` when reading it has taken more memory than `bytesMax`. */
export function boundedOrder(stored: StoredOrder, bytesMax: number): StoredOrder {
  let bytes = 0;
  const weighed = <Read extends Awaited<ReturnType<StoredOrder['commits']>>>(read: Read): Read => {
    for (const { parents } of read) bytes += ORDERED_COMMIT_BYTES + PARENT_BYTES * parents.length;
    if (bytes > bytesMax) throw new TooMuchWork(`The order of commits takes more than ${bytesMax} bytes to compare`);
    return read;
  };
  return {
    commits: async (ids) => weighed(await stored.commits(ids)),
    fromTip: async (offset, limit) => weighed(await stored.fromTip(offset, limit)),
  };
}
