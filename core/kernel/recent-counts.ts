/**
 * Counts by key that are forgotten after a while.
 *
 * Invariants: a count lasts for one to two spans after it was added, unless `keysMax` keys were counted since: then
 * the older half goes early, so that memory is bounded.
 */

export interface RecentCounts {
  of(key: string): number;
  add(key: string, amount: number): void;
}

export interface RecentCountsOptions {
  readonly spanMs: number;
  readonly keysMax: number;
  readonly monotonicMs: () => number;
}

export function createRecentCounts({ spanMs, keysMax, monotonicMs }: RecentCountsOptions): RecentCounts {
  let older = new Map<string, number>();
  let newer = new Map<string, number>();
  let since = monotonicMs();
  const forget = (): void => {
    const now = monotonicMs();
    if (now - since < spanMs && newer.size < keysMax) return;
    older = now - since < 2 * spanMs ? newer : new Map<string, number>();
    newer = new Map<string, number>();
    since = now;
  };
  return {
    of(key) {
      forget();
      // What is taken back after its addition was forgotten counts as nothing.
      return Math.max(0, (older.get(key) ?? 0) + (newer.get(key) ?? 0));
    },
    add(key, amount) {
      forget();
      newer.set(key, (newer.get(key) ?? 0) + amount);
    },
  };
}
