/**
 * Shares something bounded, such as memory or processes, among keys such as accounts. Waiting keys take turns, however
 * many requests each has and however much it asks for.
 *
 * Invariants: what is given out is never more than the total; work of one key has at most `perKey`, but for a piece
 * that is heavier and then is its only one; nobody passes a key whose turn it is, so light work never keeps heavy work
 * waiting without end; a share is released exactly once, and a waiter that gave up holds nothing. What is kept for keys
 * with few goes to no other key, so a few keys with much to do never have all.
 */

export interface FairSlots {
  /** Resolves with the idempotent release of a slot. Rejects with the signal's reason when it aborts first. */
  acquire(key: string, signal?: AbortSignal): Promise<() => void>;
  /** Returns the idempotent release of a slot, without waiting; null if none is free. */
  take(key: string): (() => void) | null;
}

export interface FairShares {
  /** Slots that take this much each; what is heavier than the total takes all of it. */
  ofWeight(weight: number): FairSlots;
}

export interface FairSharesOptions {
  readonly total: number;
  /** What one key has at most. */
  readonly perKey: number;
  /** The last `total` of all, which only a key takes that then has at most `perKey`. */
  readonly kept?: { readonly total: number; readonly perKey: number };
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

/** A key that does not wait yet goes to the end of the line. */
function addWaiter(waiting: Map<string, Waiter[]>, key: string, waiter: Waiter): void {
  const waiters = waiting.get(key);
  if (waiters === undefined) waiting.set(key, [waiter]);
  else waiters.push(waiter);
}

/** Whether a key that has `own` may take the weight, now or as soon as that much is free. */
function mayHave({ perKey, kept }: FairSharesOptions, own: number, weight: number, free: number): boolean {
  if (own > 0 && own + weight > perKey) return false;
  return kept === undefined || own + weight <= kept.perKey || weight <= free - kept.total;
}

export function createFairShares(options: FairSharesOptions): FairShares {
  const { total } = options;
  const used = new Map<string, number>();
  // The waiting keys in the order of their turns.
  const waiting = new Map<string, Waiter[]>();
  let free = total;

  const isAllowed = (key: string, weight: number) => mayHave(options, used.get(key) ?? 0, weight, free);
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
    for (let next = nextTurn(); next !== null && next.waiter.weight <= free; next = nextTurn()) {
      const { key, waiter, waiters } = next;
      waiters.shift();
      waiting.delete(key);
      // The key goes to the end of the line, behind every other key.
      setWaiters(waiting, key, waiters);
      waiter.grant();
    }
  };
  const nextTurn = () => {
    for (const [key, waiters] of waiting) {
      const [waiter] = waiters;
      if (waiter !== undefined && isAllowed(key, waiter.weight)) return { key, waiter, waiters };
    }
    return null;
  };
  const take = (key: string, weight: number) =>
    weight <= free && isAllowed(key, weight) && nextTurn() === null ? occupy(key, weight) : null;
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
    addWaiter(waiting, key, waiter);
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

export interface FairSlotsOptions {
  readonly slots: number;
  /** What one key has at most. */
  readonly slotsPerKey: number;
  /** The last `slots` of all, which only a key with fewer than `slotsPerKey` takes. */
  readonly kept?: { readonly slots: number; readonly slotsPerKey: number };
}

/** Slots for work of one weight. */
export function createFairSlots({ slots, slotsPerKey, kept }: FairSlotsOptions): FairSlots {
  const keptShares = kept === undefined ? {} : { kept: { total: kept.slots, perKey: kept.slotsPerKey } };
  return createFairShares({ total: slots, perKey: slotsPerKey, ...keptShares }).ofWeight(1);
}
