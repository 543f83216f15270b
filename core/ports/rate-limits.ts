/**
 * Rate limits that all nodes share and that a restart does not forget.
 *
 * Invariants of every adapter (one contract suite runs on each):
 * - callers that race, on one node or on several, get no more than the limit together;
 * - `take` takes from all counts or from none, so a refusal costs the caller nothing;
 * - what is stored is bounded: a count is removed after its span, and holds no address and no name in clear.
 */
import { CodedError } from '../kernel/coded-error.ts';

/** At most `timesMax` within `spanMs`. The span of a key begins with the first time that is taken. */
export interface RateLimit {
  /** Tells the limit from others; letters and dashes. */
  readonly name: string;
  readonly timesMax: number;
  readonly spanMs: number;
}

/** One of the counts of a limit. */
export interface RateCount {
  readonly limit: RateLimit;
  readonly key: string;
}

export interface RateLimits {
  /**
   * Takes one time from each count and returns null. If one of them has none left, takes nothing and returns the
   * seconds after which it has, 1 or more. Throws `RateLimitsError` if the counts cannot be reached: the caller then
   * must not do what they limit.
   */
  take(counts: readonly RateCount[]): Promise<number | null>;
  /** Gives back what `take` took, for a request that turned out not to count. */
  giveBack(counts: readonly RateCount[]): Promise<void>;
}

/** The counts could not be read or written. */
export class RateLimitsError extends CodedError<'rate-limits-unavailable'> {
  override readonly name = 'RateLimitsError';
}
