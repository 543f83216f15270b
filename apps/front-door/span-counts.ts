/**
 * Counts of what accounts spend within spans of the clock, such as its minutes, on all nodes together.
 *
 * Invariants: counting asks nobody. A node adds what it counts itself, and what others told it
 * (apps/front-door/rate-exchange.ts). A refusal counts nothing. What was counted in a span is forgotten with it, so
 * memory is bounded by the accounts that sent a valid token within one.
 */
import type { Clock } from '../../core/ports/clock.ts';

export interface SpanCounts {
  /** Tells these counts from others. */
  readonly name: string;
  readonly max: number;
  /**
   * Counts the amount and returns how much is left. Counts nothing and returns -1 if less than `kept`, 0 by default,
   * would be left.
   */
  take(key: string, amount: number, kept?: number): number;
  /** How much is left; 0 or more. */
  left(key: string): number;
  /** The seconds until the counts begin again, 1 or more. */
  waitSeconds(): number;
  /** When that is, in seconds since 1970. */
  endsAtSeconds(): number;
  /** The span that counts, by the number of spans since 1970: the same on every node whose clock is right. */
  span(): number;
  /** What this node counted of each key from `amountMin` on, the largest `keysMax`. */
  largest(amountMin: number, keysMax: number): readonly SpanCount[];
  /** Notes what all other nodes counted together, of every key that they told. Ignored if the span is over. */
  noteOthers(span: number, counts: readonly SpanCount[]): void;
}

export interface SpanCount {
  readonly key: string;
  readonly amount: number;
}

export interface SpanCountsOptions {
  readonly name: string;
  readonly max: number;
  readonly spanMs: number;
  readonly clock: Pick<Clock, 'now' | 'monotonicMs'>;
}

interface Counted {
  own: number;
  others: number;
}

export function createSpanCounts({ name, max, spanMs, clock }: SpanCountsOptions): SpanCounts {
  let counts = new Map<string, Counted>();
  let span = 0;
  let endsAtMs = Number.NEGATIVE_INFINITY;
  /** Reads the time of day only when a span ends. Returns the monotonic time. */
  const turn = (): number => {
    const monotonicMs = clock.monotonicMs();
    if (monotonicMs < endsAtMs) return monotonicMs;
    const nowMs = Date.parse(clock.now());
    span = Math.floor(nowMs / spanMs);
    endsAtMs = monotonicMs + (span + 1) * spanMs - nowMs;
    counts = new Map();
    return monotonicMs;
  };
  const countedOf = (key: string): Counted => {
    const known = counts.get(key);
    if (known !== undefined) return known;
    const counted = { own: 0, others: 0 };
    counts.set(key, counted);
    return counted;
  };
  const leftOf = (counted: Counted | undefined): number =>
    counted === undefined ? max : Math.max(0, max - counted.own - counted.others);
  return {
    name,
    max,
    take(key, amount, kept = 0) {
      turn();
      const counted = countedOf(key);
      const left = max - counted.own - counted.others - amount;
      if (left < kept) return -1;
      counted.own += amount;
      return left;
    },
    left(key) {
      turn();
      return leftOf(counts.get(key));
    },
    waitSeconds: () => {
      const monotonicMs = turn();
      return Math.max(1, Math.ceil((endsAtMs - monotonicMs) / 1_000));
    },
    endsAtSeconds() {
      turn();
      return ((span + 1) * spanMs) / 1_000;
    },
    span() {
      turn();
      return span;
    },
    largest(amountMin, keysMax) {
      turn();
      const found: SpanCount[] = [];
      for (const [key, { own }] of counts) if (own >= amountMin) found.push({ key, amount: own });
      if (found.length > keysMax) found.sort((one, other) => other.amount - one.amount);
      return found.slice(0, keysMax);
    },
    noteOthers(of, told) {
      turn();
      if (of !== span) return;
      for (const { key, amount } of told) countedOf(key).others = amount;
    },
  };
}
