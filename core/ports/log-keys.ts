/**
 * The keys that sign checkpoints of accounts' logs: where they are kept, and what they can do. They belong to no
 * account, so they stand beside the vault, under the same master key.
 *
 * Invariants: a private key leaves its store only for the process that signs, and stands in no event, log line or
 * error. The public half of a key is kept permanently, because checkpoints that it signed are.
 */
import { CodedError } from '../kernel/coded-error.ts';

/** An Ed25519 key (RFC 8032). */
export interface KeyPair {
  /** 32 bytes, hex. */
  readonly publicKey: string;
  /** A secret: PKCS #8 in DER, hex. */
  readonly privateKey: string;
}

export interface LogKey extends KeyPair {
  /** Counts up from 1. The highest signs, once an account's log endorses it. */
  readonly generation: number;
  /** The host of the service when its first key was made. */
  readonly name: string;
  /** The generation of the stolen key that it was made to replace; null if it was made by a rotation. */
  readonly revokes: number | null;
}

export interface LogKeys {
  /** Returns all keys, the oldest first. Throws `log-keys-tampered` if one was changed. */
  list(): Promise<readonly LogKey[]>;
  /** Keeps the key, and returns whether it did: not if its generation is there already. */
  add(key: LogKey): Promise<boolean>;
}

export interface NoteSigning {
  newKey(): KeyPair;
  /** Returns the Ed25519 signature of the text's UTF-8: 64 bytes, hex. */
  sign(key: KeyPair, text: string): string;
}

export type LogKeysErrorCode = 'log-keys-tampered' | 'log-keys-unavailable';

export class LogKeysError extends CodedError<LogKeysErrorCode> {
  override readonly name = 'LogKeysError';
}
