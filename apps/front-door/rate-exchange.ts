/**
 * Tells other nodes what accounts spent with this one, and learns what they spent with others.
 *
 * Invariants: no request waits for an exchange. A node that counted less than `RATE_EXCHANGE_PART_MIN` of every rate
 * asks nothing. So an account gets from n nodes at most its rate, that part of it from each other node, and what it
 * spends between two exchanges.
 */
import type { RateSumsExchange } from '../../core/ports/rate-sums.ts';
import type { SpanCounts } from './span-counts.ts';

/**
 * From this part of a rate on, a node tells the others what an account spent with it. Internal: nodes tell each other
 * less, and callers nothing.
 */
export const RATE_EXCHANGE_PART_MIN = 0.1;
/**
 * Accounts that a node reports in one message: those that spent most. Internal: nodes tell each other less, and callers
 * nothing.
 */
const RATE_EXCHANGE_ACCOUNTS_MAX = 1_000;

export interface RateExchangeOptions {
  /** Tells this node from others. */
  readonly node: string;
  readonly counts: readonly SpanCounts[];
  readonly sums: RateSumsExchange;
}

/** Returns a function that exchanges once. It throws `RateLimitsError` if others cannot be reached. */
export function createRateExchange({ node, counts, sums }: RateExchangeOptions): () => Promise<void> {
  return async () => {
    const told = counts.flatMap((count) => {
      const largest = count.largest(count.max * RATE_EXCHANGE_PART_MIN, RATE_EXCHANGE_ACCOUNTS_MAX);
      if (largest.length === 0) return [];
      return [{ name: count.name, span: count.span(), endsAtSeconds: count.endsAtSeconds(), sums: largest }];
    });
    if (told.length === 0) return;
    for (const { name, span, sums: others } of await sums.exchange(node, told)) {
      counts.find((count) => count.name === name)?.noteOthers(span, others);
    }
  };
}
