/**
 * The vault: secrets and personal data, kept out of the log so that they can be erased (invariant 5).
 *
 * Must stay true: a record is written before the event that names it and never changed; its reference is the
 * commitment SHA-256(nonce || value), so an auditor who is given nonce and value can check the event; each
 * account's records are sealed under its own data key, and destroying that key erases them all at once.
 */
import type { AccountId, Brand } from '../kernel/ids.ts';

/** SHA-256(nonce || value), hex; the value as UTF-8. */
export type VaultRef = Brand<string, 'VaultRef'>;

/** A text in the form of a reference; null for any other. */
export function parseVaultRef(text: string): VaultRef | null {
  return /^[0-9a-f]{64}$/.test(text) ? (text as VaultRef) : null;
}

/** A reference that our own records hold. */
export function vaultRef(text: string): VaultRef {
  const ref = parseVaultRef(text);
  if (ref === null) throw new TypeError(`Not a vault reference: ${JSON.stringify(text)}`);
  return ref;
}

/** What a record holds; part of the authenticated data, so a record cannot be read as another field. */
export type VaultField =
  | 'email'
  | 'password-hash'
  | 'source-address'
  | 'user-agent'
  | 'hostname'
  | 'webhook-url'
  | 'webhook-secret'
  | 's3-key'
  | 'totp-seed';

/** What opens a commitment: with both an auditor computes the reference himself. */
export interface VaultDisclosure {
  /** 32 random bytes, hex. */
  readonly nonce: string;
  readonly value: string;
}

export interface Vault {
  /**
   * Stores a value, or finds the record that this account already has for it. Durable when it resolves, and kept for
   * 22 h at least: by then an event names it, or it is put again (sweep-vault.ts).
   * Throws `account-erased` after `eraseAccount`, so that nothing personal comes back.
   */
  put(account: AccountId, field: VaultField, value: string): Promise<VaultRef>;
  /** The value, or null when it was erased or never written. Throws `record-tampered` when it was changed. */
  get(account: AccountId, field: VaultField, ref: VaultRef): Promise<string | null>;
  /** As `get`, with the nonce: for the account's own auditors. */
  disclose(account: AccountId, field: VaultField, ref: VaultRef): Promise<VaultDisclosure | null>;
  /** Whether any account has a record of this field. Looks through all records: for rare occasions. */
  holds(field: VaultField): Promise<boolean>;
  /** Removes one record, after the event that supersedes it. */
  delete(account: AccountId, ref: VaultRef): Promise<void>;
  /** Destroys the account's data key: every record of it becomes unreadable for ever. */
  eraseAccount(account: AccountId): Promise<void>;
  /** HMAC-SHA-256 under a key of the vault, hex: names a stream after a value without revealing it. */
  fingerprint(purpose: 'email', value: string): Promise<string>;
}

export type VaultErrorCode = 'account-erased' | 'record-tampered' | 'vault-unavailable';

/** The vault cannot do what was asked; `code` is stable, the message holds no value. */
export class VaultError extends Error {
  override readonly name = 'VaultError';
  readonly code: VaultErrorCode;
  constructor(code: VaultErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
