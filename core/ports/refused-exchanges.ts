/**
 * Why identity tokens were refused, for the owners of the trust rules that might have let them in.
 *
 * Invariants of every adapter: strangers cause these refusals, so they stand outside the log and are bounded. Equal
 * ones are one row with a count. A rule has at most `REFUSED_EXCHANGES_MAX` rows: the one that was seen last longest
 * ago gives way.
 */
import { CodedError } from '../kernel/coded-error.ts';
import type { AccountId, Timestamp, TrustRuleId } from '../kernel/ids.ts';

/** Why a rule did not let a token in. Stable codes, which the API answers. */
export type ExchangeFault =
  | 'algorithm-not-allowed'
  | 'audience-not-alone'
  | 'claims-malformed'
  | 'expired'
  | 'not-yet-valid'
  | 'issued-in-the-future'
  | 'lifetime-too-long'
  | 'id-missing'
  | 'used-before'
  | 'issuer-unreachable'
  | 'issuer-answer-invalid'
  | 'issuer-mismatch'
  | 'key-unknown'
  | 'signature-invalid'
  | 'claim-mismatch'
  | 'rule-changed';

export interface RefusedExchange {
  readonly rule: TrustRuleId;
  readonly fault: ExchangeFault;
  /** The claim that did not match; null for every fault but `claim-mismatch`. */
  readonly claim: string | null;
  /** What the token had there, or how the issuer answered; cut to `REFUSED_EXCHANGE_TEXT_LENGTH_MAX`. */
  readonly found: string | null;
}

export interface CountedRefusal extends RefusedExchange {
  readonly times: number;
  readonly firstAt: Timestamp;
  readonly lastAt: Timestamp;
}

export interface RefusedExchanges {
  /** Counts the refusals of one token, at most one of each rule. Removes some of any account that are too old. */
  note(account: AccountId, refusals: readonly RefusedExchange[], at: Timestamp): Promise<void>;
  /** Returns the refusals of a rule, the newest first. */
  list(account: AccountId, rule: TrustRuleId): Promise<readonly CountedRefusal[]>;
  /** Removes the refusals of a rule; of the whole account if `rule` is null. */
  remove(account: AccountId, rule: TrustRuleId | null): Promise<void>;
}

/** The refusals could not be reached. */
export class RefusedExchangesError extends CodedError<'refused-exchanges-unavailable'> {
  override readonly name = 'RefusedExchangesError';
}
