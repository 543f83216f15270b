/**
 * The vault's cryptography: AES-256-GCM under a data key for each account, wrapped by the master key.
 *
 * Invariants: the formats below never change, since stored records use them. Each key has one purpose and is
 * derived by HKDF (RFC 5869), or is random. A record is authenticated together with its account, field and reference,
 * so it cannot be moved to another place.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { VaultField, VaultRef } from '../../core/kernel/vault-ref.ts';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const ID_BYTES = 8;
const FINGERPRINT_CONTEXT = 'strata fingerprint key 1';
const NONCE_BYTES = 32;
/** NIST SP 800-38D: the IV has 96 bits, the tag 128. Random IVs are safe for 2^32 records under one key. */
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** An account's data key, and the key of its lookups, which is derived from the data key. */
export interface AccountKeys {
  readonly data: Buffer;
  readonly lookup: Buffer;
}

export interface OpenRecord {
  readonly nonce: Buffer;
  readonly value: string;
}

/** The keys derived from a master key. The master key itself is not kept. */
export interface MasterKey {
  /** Names it in the database: 16 hex digits that tell nothing of it. */
  readonly id: string;
  readonly wrapping: Buffer;
  /** The key of fingerprints, unless a rotation has kept that of an earlier master key. */
  readonly fingerprint: Buffer;
  /** For records that belong to the service, and to no account. */
  readonly service: Buffer;
}

export function deriveMasterKey(bytes: Uint8Array): MasterKey {
  if (bytes.length !== KEY_BYTES) throw new TypeError(`A master key has ${KEY_BYTES} bytes`);
  return {
    id: derive(bytes, 'strata master key id').subarray(0, ID_BYTES).toString('hex'),
    wrapping: derive(bytes, 'strata vault wrapping'),
    fingerprint: derive(bytes, 'strata fingerprint'),
    service: derive(bytes, 'strata service records'),
  };
}

export function sealFingerprintKey(master: MasterKey, key: Buffer): Buffer {
  return seal(master.wrapping, FINGERPRINT_CONTEXT, key);
}

/** Throws when it was changed, or sealed under another master key. */
export function openFingerprintKey(master: MasterKey, sealed: Buffer): Buffer {
  return unseal(master.wrapping, FINGERPRINT_CONTEXT, sealed);
}

/** Returns an account's data key, wrapped by another master key. Throws as `unwrapAccountKeys`. */
export function wrapAgain(from: MasterKey, to: MasterKey, account: AccountId, wrapped: Buffer): Buffer {
  const context = wrappingContext(account);
  return seal(to.wrapping, context, unseal(from.wrapping, context, wrapped));
}

/** Returns a new data key, and its wrapped form, which is bound to the account. */
export function makeAccountKeys(master: MasterKey, account: AccountId): { keys: AccountKeys; wrapped: Buffer } {
  const data = randomBytes(KEY_BYTES);
  return { keys: accountKeys(data), wrapped: seal(master.wrapping, wrappingContext(account), data) };
}

/** Throws when the wrapped key was changed, belongs to another account, or was wrapped by another master key. */
export function unwrapAccountKeys(master: MasterKey, account: AccountId, wrapped: Buffer): AccountKeys {
  return accountKeys(unseal(master.wrapping, wrappingContext(account), wrapped));
}

/** Returns the record of a value: its reference, SHA-256(nonce || value), and nonce and value sealed together. */
export function sealRecord(
  keys: AccountKeys,
  account: AccountId,
  field: VaultField,
  value: string,
): { ref: VaultRef; sealed: Buffer } {
  const nonce = randomBytes(NONCE_BYTES);
  const bytes = Buffer.from(value, 'utf8');
  const ref = commitmentOf(nonce, bytes);
  return { ref, sealed: seal(keys.data, recordContext(account, field, ref), Buffer.concat([nonce, bytes])) };
}

/** Returns nonce and value. Throws when the record was changed or belongs to another account, field or reference. */
export function openRecord(
  keys: AccountKeys,
  account: AccountId,
  field: VaultField,
  ref: VaultRef,
  sealed: Buffer,
): OpenRecord {
  const opened = unseal(keys.data, recordContext(account, field, ref), sealed);
  const [nonce, bytes] = [opened.subarray(0, NONCE_BYTES), opened.subarray(NONCE_BYTES)];
  if (commitmentOf(nonce, bytes) !== ref) throw new Error('The record does not match the commitment in its reference');
  return { nonce, value: bytes.toString('utf8') };
}

/**
 * Returns the HMAC by which a value's record is found; it does not reveal the value. Nobody can compute it after the
 * account's data key is destroyed.
 */
export function lookupOf(keys: AccountKeys, field: VaultField, value: string): Buffer {
  return createHmac('sha256', keys.lookup).update(`${field}\0${value}`, 'utf8').digest();
}

export function fingerprintOf(key: Buffer, purpose: string, value: string): string {
  return createHmac('sha256', key).update(`${purpose}\0${value}`, 'utf8').digest('hex');
}

export function sealForService(serviceKey: Buffer, context: string, text: string): Buffer {
  return seal(serviceKey, `strata service record 1\0${context}`, Buffer.from(text, 'utf8'));
}

/** Throws when the record was changed, belongs to another context, or was sealed under another master key. */
export function openForService(serviceKey: Buffer, context: string, sealed: Buffer): string {
  return unseal(serviceKey, `strata service record 1\0${context}`, sealed).toString('utf8');
}

function commitmentOf(nonce: Buffer, value: Buffer): VaultRef {
  return createHash('sha256').update(nonce).update(value).digest('hex') as VaultRef;
}

function accountKeys(data: Buffer): AccountKeys {
  return { data, lookup: derive(data, 'strata vault lookup') };
}

function derive(key: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, new Uint8Array(0), purpose, KEY_BYTES));
}

function wrappingContext(account: AccountId): string {
  return `strata vault key 1\0${account}`;
}

function recordContext(account: AccountId, field: VaultField, ref: VaultRef): string {
  return `strata vault record 1\0${account}\0${field}\0${ref}`;
}

/** Returns IV, tag and ciphertext, in this order. */
function seal(key: Buffer, context: string, plain: Buffer): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, iv, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]);
}

function unseal(key: Buffer, context: string, sealed: Buffer): Buffer {
  const iv = sealed.subarray(0, IV_BYTES);
  const tag = sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES);
  const decipher = createDecipheriv(ALGORITHM, key, iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context)).setAuthTag(tag);
  return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
}
