/**
 * Pushes whose webhook deliveries wait until their account has room for more.
 *
 * Invariants: rows are operational. A row is stored before the policy passes its push, and removed after the push's
 * last delivery was requested, so no push is forgotten, whichever process dies.
 */
import type { LogPosition, StreamName } from '../kernel/envelope.ts';
import type { AccountId, EventId } from '../kernel/ids.ts';

export interface WaitingPush {
  /** The id of the push's `RefsUpdated`. */
  readonly id: EventId;
  readonly account: AccountId;
  readonly stream: StreamName;
  readonly revision: number;
  /** The rows of an account are in this order. */
  readonly position: LogPosition;
  /** How many refs of those that notify have all their deliveries. */
  readonly refsDone: number;
}

export interface WaitingPushes {
  /** Adds a row, or moves a known one on; one that is further stays so. */
  put(push: WaitingPush): Promise<void>;
  /** Returns at most `limit` rows of the account, in order. */
  earliest(account: AccountId, limit: number): Promise<readonly WaitingPush[]>;
  remove(id: EventId): Promise<void>;
  /** Returns the accounts that have rows. */
  accounts(): Promise<readonly AccountId[]>;
  forgetAccount(account: AccountId): Promise<void>;
}
