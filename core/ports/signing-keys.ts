/**
 * The keys that sign the identity tokens of this service: where they are kept, and what they can do. They belong to no
 * account, so they stand beside the vault, under the same master key.
 *
 * Invariants: a private key leaves its store only for the process that signs, and stands in no event, log line or
 * error. The sets of all nodes are the same: of several nodes that add a generation, one does.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { Timestamp } from '../kernel/ids.ts';

/** RSA is what every cloud checks; elliptic curves give shorter tokens. */
export const SIGNING_ALGORITHMS = ['RS256', 'ES256'] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

export interface SigningKey {
  /** The thumbprint of the key (RFC 7638), by which a token names it. */
  readonly id: string;
  readonly algorithm: SigningAlgorithm;
  /** A secret: the private key as a JWK (RFC 7517), in JSON. */
  readonly privateKey: string;
}

/** The public half of a key, as a JWK. */
export type PublicKey = Readonly<Record<string, string>>;

/** The keys that sign at one time, one for each algorithm. */
export interface SigningKeySet {
  /** Counts up from 1. */
  readonly generation: number;
  /** When the set begins to sign, in place of those of lower generations. */
  readonly signsFrom: Timestamp;
  readonly keys: readonly SigningKey[];
}

export interface SigningKeys {
  /** Returns all sets, the lowest generation first. Throws `signing-keys-tampered` if one was changed. */
  list(): Promise<readonly SigningKeySet[]>;
  /** Keeps the set, and returns whether it did: not if its generation is there already. */
  add(set: SigningKeySet): Promise<boolean>;
  /** Destroys all sets below the generation. Idempotent. */
  removeBelow(generation: number): Promise<void>;
}

export interface TokenSigning {
  /** Makes a new key for each algorithm. */
  newKeys(): Promise<readonly SigningKey[]>;
  publicKey(key: SigningKey): PublicKey;
  /** Returns the claims as a signed JWT (RFC 7519) in its compact form. */
  sign(key: SigningKey, claims: Readonly<Record<string, string | number>>): Promise<string>;
}

export type SigningKeysErrorCode = 'signing-keys-tampered' | 'signing-keys-unavailable';

export class SigningKeysError extends CodedError<SigningKeysErrorCode> {
  override readonly name = 'SigningKeysError';
}
