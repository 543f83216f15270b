/**
 * Identity tokens: signed statements of an issuer about who runs a job (JSON Web Tokens, RFC 7519).
 *
 * Invariants: only algorithms with a public key are accepted, whatever the token's header says. The key comes from
 * the issuer's own list of keys and from nowhere else: never from the token, never from a URL in it. Everything that a
 * token or an issuer sends is bounded before it is used, and an issuer that hangs delays nobody but its own callers.
 */
import type { AccountId, Timestamp } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';
import type { ExchangeFault } from './refused-exchanges.ts';

/** What a token says, with nothing verified. */
export interface UnverifiedToken {
  readonly claims: JsonObject;
  /** The names of the claims whose number is not the one in the token: it was rounded, or lost its sign. */
  readonly inexact: ReadonlySet<string>;
  /** False for `none`, for algorithms with a shared secret, and for all that are not in the list. */
  readonly isAlgorithmAllowed: boolean;
}

export interface ExpectedToken {
  /** In whose name the issuer's keys are fetched: an account has a few fetches at the same time. */
  readonly account: AccountId;
  /** The caller must have found it in a trust rule of the account, since it is fetched. */
  readonly issuer: string;
  readonly audience: string;
  readonly now: Timestamp;
}

export interface VerificationFault {
  readonly fault: Extract<
    ExchangeFault,
    | 'issuer-unreachable'
    | 'issuer-answer-invalid'
    | 'issuer-mismatch'
    | 'key-unknown'
    | 'signature-invalid'
    | 'claims-malformed'
  >;
  /** How the issuer answered, as a code; null if there is nothing to tell. */
  readonly found: string | null;
}

export interface IdentityTokens {
  /** Reads a token without verifying it. Null for a text that is no signed token, or is beyond the limits. */
  read(token: string): UnverifiedToken | null;
  /** Verifies the signature, the issuer, the audience and the times. Returns null for a token that is genuine. */
  verify(token: string, expected: ExpectedToken): Promise<VerificationFault | null>;
}
