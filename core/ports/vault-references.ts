/**
 * Which vault records are named by an event: this tells records in use from records whose event was never appended.
 *
 * Invariants: a record that an event has named stays named. The references found in the log and the
 * mark of how far it was read are saved in one step. A record that `put` returns again during a sweep is not removed.
 */
import type { AccountId, Timestamp } from '../kernel/ids.ts';
import type { VaultField, VaultRef } from '../kernel/vault-ref.ts';
import type { ReadMark } from './read-mark.ts';

export interface VaultRecordId {
  readonly account: AccountId;
  readonly field: VaultField;
  readonly ref: VaultRef;
}

export interface VaultReferences {
  /** Returns the time of the vault's own clock, by which the age of records is measured. */
  now(): Promise<Timestamp>;
  /** Returns how far the log was read; null before the first time. */
  readUpTo(): Promise<ReadMark | null>;
  /**
   * Saves that events up to the mark name these records. Without a mark, the saved mark does not change. References
   * that belong to no record are ignored.
   */
  note(named: ReadonlySet<VaultRef>, upTo: ReadMark | null): Promise<void>;
  /** Removes at most `limit` records that no event names and that `put` last returned before `putBefore`. */
  removeUnnamed(putBefore: Timestamp, limit: number): Promise<readonly VaultRecordId[]>;
}
