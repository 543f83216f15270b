/**
 * What nodes tell each other of the rates that each counts in its memory (apps/front-door/rate-exchange.ts).
 *
 * Invariants: a node's sums of a span replace what it told of that span before. What is told may be forgotten at a
 * crash, and is removed when its span is over.
 */

/** Sums of one count in one of its spans. */
export interface RateSums {
  readonly name: string;
  /** The number of spans since 1970. */
  readonly span: number;
  /** When the span ends, in seconds since 1970. */
  readonly endsAtSeconds: number;
  readonly sums: readonly { readonly key: string; readonly amount: number }[];
}

export interface RateSumsExchange {
  /**
   * Tells the sums of this node, and returns those of all others together for the same counts and spans. Throws
   * `RateLimitsError` if they cannot be reached.
   */
  exchange(node: string, sums: readonly RateSums[]): Promise<readonly Omit<RateSums, 'endsAtSeconds'>[]>;
}
