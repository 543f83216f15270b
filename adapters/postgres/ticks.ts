/**
 * One timer for all that a node does at the same interval, so that an idle node wakes once instead of once for each.
 *
 * Invariants: nobody waits for longer than the interval. Without anybody who waits there is no timer.
 */
export interface Ticks {
  /** Calls back at the next tick. The returned function takes that back. */
  next(onTick: () => void): () => void;
}

export function createTicks(intervalMs: number): Ticks {
  let waiting = new Set<() => void>();
  let timer: NodeJS.Timeout | null = null;
  const tick = (): void => {
    timer = null;
    const due = waiting;
    waiting = new Set();
    for (const onTick of due) onTick();
  };
  return {
    next: (onTick) => {
      // An own function: a caller may wait twice with the same one.
      const call = (): void => onTick();
      waiting.add(call);
      timer ??= setTimeout(tick, intervalMs);
      return () => {
        waiting.delete(call);
        if (waiting.size > 0 || timer === null) return;
        clearTimeout(timer);
        timer = null;
      };
    },
  };
}
