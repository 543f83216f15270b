/**
 * Identity tokens of this service: by them a user's cloud knows for which account the service asks.
 *
 * Invariants: whoever holds a token is, for the cloud, the account that it names. So a token lives for minutes, is
 * made for one use, and goes to the token service of the cloud only.
 */
import type { PublicKey, SigningAlgorithm } from './signing-keys.ts';

export interface IdentityRequest {
  /** Who shall accept the token. */
  readonly audience: string;
  /** The subject: `account:<account id>`. */
  readonly subject: string;
  /** RS256 when absent, which every cloud checks. */
  readonly algorithm?: SigningAlgorithm;
}

export interface IdentityIssuer {
  /** Returns a token that holds for `IDENTITY_TOKEN_SPAN_SECONDS`. */
  issue(request: IdentityRequest): Promise<string>;
  /** Returns the keys by which tokens can be checked: those that sign, will sign soon, or signed lately. */
  publicKeys(): Promise<readonly PublicKey[]>;
}
