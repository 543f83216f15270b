/**
 * The vault: secrets and personal data, kept out of the log so that they can be erased (invariant 5).
 *
 * Must stay true: a record is written before the event that names it and never changed; its reference is the
 * commitment SHA-256(nonce || value), so an auditor who is given nonce and value can check the event; each
 * account's records are sealed under its own data key, and destroying that key erases them all at once.
 */
import type { AccountId, Brand } from '../kernel/ids.ts';

/** SHA-256(nonce || value), hex. */
export type VaultRef = Brand<string, 'VaultRef'>;

/** What a record holds; part of the authenticated data, so a record cannot be read as another field. */
export type VaultField =
  | 'email'
  | 'password-hash'
  | 'source-address'
  | 'user-agent'
  | 'webhook-url'
  | 'webhook-secret'
  | 's3-key'
  | 'totp-seed';

export interface Vault {
  /** Stores a value, or finds the record that this account already has for it. Durable when it resolves. */
  put(account: AccountId, field: VaultField, value: string): Promise<VaultRef>;
  /** The value, or null when it was erased or never written. Throws when the record was tampered with. */
  get(account: AccountId, field: VaultField, ref: VaultRef): Promise<string | null>;
  /** Removes one record, after the event that supersedes it. */
  delete(account: AccountId, ref: VaultRef): Promise<void>;
  /** Destroys the account's data key: every record of it becomes unreadable for ever. */
  eraseAccount(account: AccountId): Promise<void>;
  /** HMAC-SHA-256 under a key of the vault, hex: names a stream after a value without revealing it. */
  fingerprint(purpose: 'email', value: string): Promise<string>;
}
