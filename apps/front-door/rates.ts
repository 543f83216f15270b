/**
 * Rates counted in this node's memory, for what only paces a client: such a rate may be multiplied by the number of
 * nodes and forgotten at a restart. A rate that protects a secret or a stranger's account is a `RateLimit`
 * (core/ports/rate-limits.ts).
 *
 * Invariants: memory is bounded, and the least recently used keys are evicted first. A refusal does not count, so
 * a caller that waits for the returned time is admitted.
 */
import { LRUCache } from 'lru-cache';
import { countedCache, entriesAtMost } from '../../core/kernel/shown-caches.ts';
import type { Clock } from '../../core/ports/clock.ts';

export interface Rate {
  /** Counts the call and returns null if it is within the limit, else returns the seconds to wait, 1 or more. */
  take(key: string): number | null;
  /** Returns what `take` would return, and counts nothing. */
  waitSeconds(key: string): number | null;
}

export interface RateOptions {
  /** Calls within the span. */
  readonly timesMax: number;
  readonly spanMs: number;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** Keys that are counted; the one that was used longest ago is forgotten first. */
export const KEYS_MAX = 100_000;

export function createRate({ timesMax, spanMs, clock }: RateOptions): Rate {
  const taken = countedCache(
    'rate_counts',
    'entries',
    new LRUCache<string, readonly number[]>(entriesAtMost(KEYS_MAX)),
  );
  const recentOf = (key: string, now: number) => (taken.get(key) ?? []).filter((at) => now - at < spanMs);
  const waitOf = ([oldest, ...others]: readonly number[], now: number): number | null => {
    if (oldest === undefined || others.length + 1 < timesMax) return null;
    return Math.max(1, Math.ceil((oldest + spanMs - now) / 1_000));
  };
  return {
    take(key) {
      const now = clock.monotonicMs();
      const recent = recentOf(key, now);
      const wait = waitOf(recent, now);
      if (wait === null) taken.set(key, [...recent, now]);
      return wait;
    },
    waitSeconds(key) {
      const now = clock.monotonicMs();
      return waitOf(recentOf(key, now), now);
    },
  };
}
