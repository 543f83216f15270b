/**
 * How many webhook deliveries of an account begin in each hour.
 *
 * Invariants: an hour never counts more than was allowed when it was taken from, however many nodes take at the same
 * time. Rows are operational: when they are lost, the hours begin again. What a delivery was given stands in its own
 * event.
 */
import type { AccountId, Timestamp } from '../kernel/ids.ts';

/** Deliveries that begin in one hour: those with the numbers `first` to `first + count - 1` of the hour. */
export interface BudgetPart {
  /** The hour's start. */
  readonly hour: Timestamp;
  readonly first: number;
  readonly count: number;
}

export interface WantedBudget {
  /** Starts of hours, in order. What is older than the first is forgotten. */
  readonly hours: readonly Timestamp[];
  readonly count: number;
  readonly perHour: number;
}

export interface WebhookBudgets {
  /**
   * Takes from the earliest hours with room, in their order; null, and takes nothing, if all together have too little.
   */
  take(account: AccountId, wanted: WantedBudget): Promise<readonly BudgetPart[] | null>;
  /** Returns what was taken of the hour. */
  taken(account: AccountId, hour: Timestamp): Promise<number>;
  /** Forgets the hours before this one, of all accounts. */
  removeBefore(hour: Timestamp): Promise<void>;
}
