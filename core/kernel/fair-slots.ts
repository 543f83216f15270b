/**
 * Bounds how much runs at the same time, and shares the slots fairly: waiting keys take turns, however many requests
 * each has.
 *
 * Invariants: a slot is released exactly once, and a waiter that gave up holds none. Slots that are kept for keys
 * with few go to no other key, so a few keys with much to do never have all.
 */

export interface FairSlots {
  /** Resolves with the idempotent release of a slot. Rejects with the signal's reason when it aborts first. */
  acquire(key: string, signal?: AbortSignal): Promise<() => void>;
  /** Returns the idempotent release of a slot, without waiting; null if none is free. */
  take(key: string): (() => void) | null;
}

interface Waiter {
  readonly grant: () => void;
}

export interface FairSlotsOptions {
  readonly slots: number;
  /** What one key has at most. */
  readonly slotsPerKey: number;
  /** The last `slots` of all, which only a key with fewer than `slotsPerKey` takes. */
  readonly kept?: { readonly slots: number; readonly slotsPerKey: number };
}

export function createFairSlots(options: FairSlotsOptions): FairSlots {
  const { kept = { slots: 0, slotsPerKey: 0 } } = options;
  const running = new Map<string, number>();
  // The waiting keys in the order of their turns.
  const waiting = new Map<string, Waiter[]>();
  let free = options.slots;

  const runningOf = (key: string) => running.get(key) ?? 0;
  const isFree = (key: string) => {
    const own = runningOf(key);
    return own < options.slotsPerKey && free > (own < kept.slotsPerKey ? 0 : kept.slots);
  };
  const occupy = (key: string) => {
    free -= 1;
    running.set(key, runningOf(key) + 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      free += 1;
      const left = runningOf(key) - 1;
      if (left === 0) running.delete(key);
      else running.set(key, left);
      grantNext();
    };
  };
  const grantNext = () => {
    for (const [key, waiters] of waiting) {
      if (!isFree(key)) continue;
      waiting.delete(key);
      const next = waiters.shift();
      // The key goes to the end of the line, behind every other key.
      if (waiters.length > 0) waiting.set(key, waiters);
      next?.grant();
      return;
    }
  };

  return {
    take: (key) => (isFree(key) ? occupy(key) : null),
    acquire: async (key, signal) => {
      signal?.throwIfAborted();
      if (isFree(key) && !waiting.has(key)) return occupy(key);
      return new Promise((resolve, reject) => {
        const giveUp = () => {
          const others = (waiting.get(key) ?? []).filter((other) => other !== waiter);
          if (others.length > 0) waiting.set(key, others);
          else waiting.delete(key);
          reject(signal?.reason);
        };
        const waiter: Waiter = {
          grant: () => {
            signal?.removeEventListener('abort', giveUp);
            resolve(occupy(key));
          },
        };
        signal?.addEventListener('abort', giveUp, { once: true });
        const queue = waiting.get(key);
        if (queue === undefined) waiting.set(key, [waiter]);
        else queue.push(waiter);
      });
    },
  };
}
