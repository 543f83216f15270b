/**
 * Which records of the vault some event names: how a record whose event never came is told from one in use.
 *
 * Must stay true: what an event named once counts as named for ever; what was read of the log is said together with
 * what was found in it, in one step; a record that `put` gives out again meanwhile is not removed.
 */
import type { LogPosition, StreamName } from '../kernel/envelope.ts';
import type { AccountId, EventId, Timestamp } from '../kernel/ids.ts';
import type { VaultField, VaultRef } from './vault.ts';

/** The last event that was looked at: enough to tell whether a log still holds it at its place. */
export interface ReadMark {
  readonly position: LogPosition;
  readonly stream: StreamName;
  readonly revision: number;
  readonly eventId: EventId;
}

export interface VaultRecordId {
  readonly account: AccountId;
  readonly field: VaultField;
  readonly ref: VaultRef;
}

export interface VaultReferences {
  /** What the vault's own clock says, by which the age of records is judged. */
  now(): Promise<Timestamp>;
  /** How far the log was looked at; null before the first time. */
  readUpTo(): Promise<ReadMark | null>;
  /** These records are named by events up to the mark. What is no record's reference does no harm. */
  note(named: ReadonlySet<VaultRef>, upTo: ReadMark): Promise<void>;
  /** Removes records that no event names and that were last asked for by `put` before the time; at most `limit`. */
  removeUnnamed(putBefore: Timestamp, limit: number): Promise<readonly VaultRecordId[]>;
}
