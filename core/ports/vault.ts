/**
 * The vault: secrets and personal data, kept out of the log so that they can be erased (docs/architecture.md,
 * invariant 5).
 *
 * Invariants: a record is written before the event that names it, and never changed. Its reference is the
 * commitment SHA-256(nonce || value), so an auditor who has nonce and value can check the event. Each account's records
 * are encrypted under the account's own data key, and destroying that key erases all of them together.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { AccountId } from '../kernel/ids.ts';
import type { VaultDisclosure, VaultField, VaultRef } from '../kernel/vault-ref.ts';

export interface VaultRecordName {
  readonly field: VaultField;
  readonly ref: VaultRef;
}

export interface Vault {
  /**
   * Stores a value, or finds the record that this account already has for it. Durable when it resolves. The record is
   * kept for at least 22 h: by then an event must name it, or the caller must put it again (sweep-vault.ts).
   * Throws `account-erased` after `eraseAccount`, so that no personal data returns.
   */
  put(account: AccountId, field: VaultField, value: string): Promise<VaultRef>;
  /** Returns the value, or null if it was erased or never written. Throws `record-tampered` if it was changed. */
  get(account: AccountId, field: VaultField, ref: VaultRef): Promise<string | null>;
  /** Returns what `get` returns, with the nonce, for the account's own auditors. */
  disclose(account: AccountId, field: VaultField, ref: VaultRef): Promise<VaultDisclosure | null>;
  /**
   * Discloses many records of different references in one call: returns those that are there. Throws if one of them
   * was changed.
   */
  discloseAll(account: AccountId, records: readonly VaultRecordName[]): Promise<ReadonlyMap<VaultRef, VaultDisclosure>>;
  /** Returns whether any account has a record of this field. Scans all records: for rare use. */
  holds(field: VaultField): Promise<boolean>;
  /** Removes one record. Call it after the event that supersedes the record is in the log. */
  delete(account: AccountId, ref: VaultRef): Promise<void>;
  /** Destroys the account's data key: all its records become unreadable, and stay so. */
  eraseAccount(account: AccountId): Promise<void>;
  /**
   * Returns an HMAC-SHA-256 under a key of the vault, hex: to name a stream or a count without revealing the value, or
   * as a key that all nodes share and no store holds.
   */
  fingerprint(purpose: 'email' | 'rate-limit' | 'website-forms' | 'log-source', value: string): Promise<string>;
}

export type VaultErrorCode = 'account-erased' | 'record-tampered' | 'vault-unavailable';

/** The vault could not serve the call. `code` is stable, the message holds no value. */
export class VaultError extends CodedError<VaultErrorCode> {
  override readonly name = 'VaultError';
}
