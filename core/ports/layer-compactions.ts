/**
 * Which repositories are to be compacted: one row for each, from a push that left many layers until a compaction.
 *
 * Invariants: rows are operational. A row that was lost costs time and loses nothing, since the next push adds it
 * again. A row that is asked for while its compaction is under way stays.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { AccountId, RepositoryId, Timestamp } from '../kernel/ids.ts';

export type CompactionStep = 'compact';

export interface WantedCompaction {
  readonly account: AccountId;
  readonly repository: RepositoryId;
}

export interface LayerCompactions {
  /** Adds a row, or makes the one that is there due earlier. */
  want(compaction: WantedCompaction, dueAt: Timestamp): Promise<void>;
  /** Resolves null for a row that was removed. */
  find(repository: RepositoryId): Promise<WantedCompaction | null>;
  /** Removes a row if nobody asked for it since its revision. */
  done(repository: RepositoryId, revision: number): Promise<void>;
}

/** The rows cannot be reached. Every call may be repeated. */
export class LayerCompactionsError extends CodedError<'layer-compactions-unavailable'> {
  override readonly name = 'LayerCompactionsError';
}
