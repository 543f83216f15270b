/**
 * A limit of how much work runs concurrently.
 *
 * Invariants: work starts in the order of the calls; work that fails frees its slot like work that succeeds.
 */

/** Returns a function that runs work, at most `concurrentMax` at the same time; further calls wait. */
export function createConcurrencyLimit(
  concurrentMax: number,
): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= concurrentMax) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      // Hands the slot to the first waiting call instead of freeing it, so that a later call cannot overtake it.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
