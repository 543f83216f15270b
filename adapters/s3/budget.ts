/**
 * Bounds what requests to one bucket hold together: connections, or bytes of layers in memory.
 *
 * Invariants: it is granted in the order of the requests, so that a large one is never starved; who waits too long
 * gets a failure.
 */
import { S3Failure } from './failures.ts';

export interface Budget {
  /** Resolves when there is room, with a function that gives it back once. */
  take(amount: number): Promise<() => void>;
}

export function createBudget(amountMax: number, waitMsMax: number): Budget {
  const waiting = new Set<{ readonly amount: number; readonly grant: () => void }>();
  let taken = 0;
  const serve = (): void => {
    for (const waiter of waiting) {
      if (taken + waiter.amount > amountMax) return;
      waiting.delete(waiter);
      taken += waiter.amount;
      waiter.grant();
    }
  };
  return {
    take: (amount) =>
      new Promise((resolve, reject) => {
        let isGivenBack = false;
        const giveBack = (): void => {
          if (isGivenBack) return;
          isGivenBack = true;
          taken -= amount;
          serve();
        };
        const waiter = {
          amount,
          grant: () => {
            clearTimeout(timer);
            resolve(giveBack);
          },
        };
        const timer = setTimeout(() => {
          waiting.delete(waiter);
          reject(new S3Failure('throttled', 'Too many requests wait for the bucket'));
          serve();
        }, waitMsMax);
        waiting.add(waiter);
        serve();
      }),
  };
}
