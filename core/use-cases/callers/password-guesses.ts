/**
 * The limits of guessing passwords (docs/interface.md, Signing in).
 *
 * Invariants: each guess is counted before the password is compared, and given back if it was right. So guesses that
 * race on several nodes get no more than the limit together. A count is of the name that was typed, not of the account
 * it leads to: a refusal does not tell that two names are of one account, or that a name is of none.
 */
import { isIpv6, wideNetworkOf } from '../../kernel/network.ts';
import type { RateCount, RateLimit, RateLimits } from '../../ports/rate-limits.ts';
import { networkCounts } from './network-counts.ts';

/**
 * Wrong passwords within the span: of one login from one network, of one login, of one network, of a /48 of IPv6, and
 * of one login in a browser that has signed in before (core/kernel/network.ts).
 */
export const SIGN_IN_FAILURES_SPAN_MS = 15 * 60_000;
export const SIGN_IN_FAILURES_PAIR_MAX = 10;
export const SIGN_IN_FAILURES_LOGIN_MAX = 100;
export const SIGN_IN_FAILURES_NETWORK_MAX = 100;
export const SIGN_IN_FAILURES_WIDE_MAX = 500;
export const SIGN_IN_FAILURES_BROWSER_MAX = 10;

const spanMs = SIGN_IN_FAILURES_SPAN_MS;
const PAIR: RateLimit = { name: 'guess-pair', timesMax: SIGN_IN_FAILURES_PAIR_MAX, spanMs };
const LOGIN: RateLimit = { name: 'guess-login', timesMax: SIGN_IN_FAILURES_LOGIN_MAX, spanMs };
const NETWORK: RateLimit = { name: 'guess-network', timesMax: SIGN_IN_FAILURES_NETWORK_MAX, spanMs };
const WIDE: RateLimit = { name: 'guess-wide', timesMax: SIGN_IN_FAILURES_WIDE_MAX, spanMs };
const BROWSER: RateLimit = { name: 'guess-browser', timesMax: SIGN_IN_FAILURES_BROWSER_MAX, spanMs };

export interface Guess {
  /** Whose secret is guessed: the name as typed, or an account's id. It begins with the kind of what is guessed. */
  readonly of: string;
  readonly address: string;
  /** The id of a browser that has signed in to the account before; null for any other. */
  readonly browser: string | null;
}

/**
 * Returns the counts of a guess. A browser that has signed in before has a count of its own, so strangers who guess
 * cannot lock its person out.
 */
export function countsOf({ of, address, browser }: Guess): readonly RateCount[] {
  if (browser !== null) return [{ limit: BROWSER, key: `${of} ${browser}` }];
  // The whole /48 of IPv6: a customer who holds it may not use up the count of a name, and so lock its person out.
  const pair = isIpv6(address) ? wideNetworkOf(address) : address;
  return [
    ...networkCounts({ network: NETWORK, wide: WIDE }, address),
    { limit: PAIR, key: `${of} ${pair}` },
    { limit: LOGIN, key: of },
  ];
}

/** Compares a secret, and gives the counts back if that fails: a guess that was not compared does not count. */
export async function unlessFailed<Result>(
  rateLimits: Pick<RateLimits, 'giveBack'>,
  counts: readonly RateCount[],
  comparing: () => Promise<Result>,
): Promise<Result> {
  try {
    return await comparing();
  } catch (error) {
    await rateLimits.giveBack(counts);
    throw error;
  }
}
