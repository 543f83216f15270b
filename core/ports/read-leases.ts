/**
 * The table of read leases, which all processes of a service share: who may answer from memory without asking the log.
 *
 * Invariants: an append either sees a row or commits before that row was inserted.
 */
import type { LogPosition } from '../kernel/envelope.ts';

/** A row of the table, as it stood when it was read. */
export interface Lease {
  /** The process that holds it. */
  readonly node: string;
  /** Another one at each insert. */
  readonly epoch: number;
  /** How often it was renewed since its insert. */
  readonly renewals: number;
  /** The highest position that its holder said it has heard of. */
  readonly heard: LogPosition;
  /** How long it lasts after an insert or a renewal, at most `READ_LEASE_SPAN_MS_MAX`. */
  readonly spanMs: number;
  /** The life of the database in which the row was read: each crash ends one. Null: it is not known. */
  readonly life: number | null;
}

export interface LeaseListener {
  /** The log reaches to the position, and these were the leases when it did; null if that is unknown. */
  onHead(position: LogPosition, leases: readonly Lease[] | null): void;
  /** A holder has heard of the position. */
  onHeard(node: string, position: LogPosition): void;
}

/** Each call rejects when the database cannot be reached. */
export interface LeaseTable {
  /** Inserts this process's row, in place of an older one of it, under the lock of the appends; returns its epoch. */
  insert(spanMs: number): Promise<number>;
  /** Counts one renewal. Resolves with false when the row is gone or has another epoch. */
  renew(epoch: number): Promise<boolean>;
  /**
   * Removes the row if its epoch and its renewals are still those of `lease`, in the same life of the database, and not
   * within `READ_LEASE_SPAN_MS_MAX` after that life began. A crash may lose renewals: a count from before it says
   * nothing.
   */
  remove(lease: Lease): Promise<void>;
  /** Removes this process's row of that epoch. */
  giveUp(epoch: number): Promise<void>;
  rows(): Promise<readonly Lease[]>;
  /** Tells all processes that this one, whose row has that epoch, has heard of the position. */
  tell(epoch: number, position: LogPosition): Promise<void>;
  /** Calls the listener until closed. A message may be lost or late. */
  listen(listener: LeaseListener): { close(): Promise<void> };
}
