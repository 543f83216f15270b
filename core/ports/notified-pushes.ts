/**
 * Which pushes webhooks were notified of: those that became deliveries, or rows that wait for room.
 *
 * Invariants: what is saved was true when it was written, and stays so, since a push that is done stays done. An older
 * one only makes readers wait longer.
 */
import type { LogPosition } from '../kernel/envelope.ts';
import type { AccountId } from '../kernel/ids.ts';

export interface NotifiedPushes {
  /** Every push up to here is done, but for those of `undone`. */
  readonly reached: LogPosition;
  /** The oldest push that is not done, of each account that has one. */
  readonly undone: ReadonlyMap<AccountId, LogPosition>;
}

export interface NotifiedPushesStore {
  /** Takes the place of what was saved before. */
  save(notified: NotifiedPushes): Promise<void>;
  /** Returns a position up to which the account's pushes are done; null before the first `save`. */
  reachedFor(account: AccountId): Promise<LogPosition | null>;
}
