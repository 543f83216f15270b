/**
 * References to records of the vault, as events hold them: each is a commitment (docs/architecture.md, invariant 5).
 */
import type { Brand } from './ids.ts';

/** SHA-256(nonce || value), hex; the value as UTF-8. */
export type VaultRef = Brand<string, 'VaultRef'>;

/** Returns a text that has the form of a reference; null for any other text. */
export function parseVaultRef(text: string): VaultRef | null {
  return /^[0-9a-f]{64}$/.test(text) ? (text as VaultRef) : null;
}

/** Parses like `parseVaultRef`, for text from Strata's own records: throws TypeError for any other text. */
export function vaultRef(text: string): VaultRef {
  const ref = parseVaultRef(text);
  if (ref === null) throw new TypeError(`Not a vault reference: ${JSON.stringify(text)}`);
  return ref;
}

/** What a record holds. It is part of the authenticated data, so a record cannot be read as another field. */
export type VaultField =
  | 'email'
  | 'password-hash'
  | 'source-address'
  | 'user-agent'
  | 'hostname'
  | 'webhook-url'
  | 'webhook-secret'
  | 'bucket-place'
  | 'bucket-access'
  | 'oidc-conditions'
  | 'oidc-subject'
  | 'totp-seed'
  | 'passkey';

/** What opens a commitment: an auditor computes the reference from both members. */
export interface VaultDisclosure {
  /** 32 random bytes, hex. */
  readonly nonce: string;
  readonly value: string;
}
