/**
 * Shares something bounded, such as memory, among work of different weights: waiting keys take turns, whatever they ask
 * for.
 *
 * Invariants: what is given out is never more than the total; work of one key has at most `perKey`, but for a piece
 * that is heavier and then is its only one; nobody passes a key whose turn it is, so heavy work is not kept waiting by
 * light work without end; a waiter that gave up holds nothing.
 */
import type { FairSlots } from './fair-slots.ts';

export interface FairShares {
  /** Slots that take this much each; what is heavier than the total takes all of it. */
  ofWeight(weight: number): FairSlots;
}

interface Waiter {
  readonly weight: number;
  readonly grant: () => void;
}

/**
 * `granted` rejects with the reason of the signal when it aborts first. The waiter has left by then: nothing is lost.
 */
function createWaiter(
  weight: number,
  signal: AbortSignal | undefined,
  { occupy, leave }: { occupy(): () => void; leave(waiter: Waiter): void },
): { readonly waiter: Waiter; readonly granted: Promise<() => void> } {
  const { promise: granted, resolve, reject } = Promise.withResolvers<() => void>();
  const giveUp = () => {
    leave(waiter);
    reject(signal?.reason);
  };
  const waiter: Waiter = {
    weight,
    grant: () => {
      signal?.removeEventListener('abort', giveUp);
      resolve(occupy());
    },
  };
  signal?.addEventListener('abort', giveUp, { once: true });
  return { waiter, granted };
}

/** A key that waits already keeps its place. */
function setWaiters(waiting: Map<string, Waiter[]>, key: string, waiters: Waiter[]): void {
  if (waiters.length > 0) waiting.set(key, waiters);
  else waiting.delete(key);
}

export function createFairShares({ total, perKey }: { readonly total: number; readonly perKey: number }): FairShares {
  const used = new Map<string, number>();
  // The waiting keys in the order of their turns.
  const waiting = new Map<string, Waiter[]>();
  let free = total;

  const mayHave = (key: string, weight: number) => {
    const own = used.get(key) ?? 0;
    return own === 0 || own + weight <= perKey;
  };
  const occupy = (key: string, weight: number) => {
    free -= weight;
    used.set(key, (used.get(key) ?? 0) + weight);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      free += weight;
      const left = (used.get(key) ?? 0) - weight;
      if (left === 0) used.delete(key);
      else used.set(key, left);
      grantNext();
    };
  };
  const grantNext = () => {
    for (let next = nextTurn(); next !== null && next.weight <= free; next = nextTurn()) {
      const { key, waiter, others } = next;
      waiting.delete(key);
      // The key goes to the end of the line, behind every other key.
      setWaiters(waiting, key, others);
      waiter.grant();
    }
  };
  const nextTurn = () => {
    for (const [key, [waiter, ...others]] of waiting) {
      if (waiter !== undefined && mayHave(key, waiter.weight)) return { key, waiter, others, weight: waiter.weight };
    }
    return null;
  };
  const take = (key: string, weight: number) =>
    nextTurn() === null && weight <= free && mayHave(key, weight) ? occupy(key, weight) : null;
  const leave = (key: string, waiter: Waiter) => {
    const others = (waiting.get(key) ?? []).filter((other) => other !== waiter);
    setWaiters(waiting, key, others);
    // It may have been the one that nobody passes.
    grantNext();
  };
  const wait = (key: string, weight: number, signal: AbortSignal | undefined): Promise<() => void> => {
    const { waiter, granted } = createWaiter(weight, signal, {
      occupy: () => occupy(key, weight),
      leave: (gone) => leave(key, gone),
    });
    setWaiters(waiting, key, [...(waiting.get(key) ?? []), waiter]);
    return granted;
  };

  return {
    ofWeight: (wanted) => {
      const weight = Math.min(wanted, total);
      return {
        take: (key) => take(key, weight),
        acquire: async (key, signal) => {
          signal?.throwIfAborted();
          return take(key, weight) ?? (await wait(key, weight, signal));
        },
      };
    },
  };
}
