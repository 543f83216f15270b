/**
 * Turns for work of which only so much may run at once.
 *
 * Must stay true: turns are given in the order they were asked for; work that fails gives its turn on like any other.
 */

/** Runs work, at most `concurrentMax` of it at once; the rest waits. */
export function createTurns(concurrentMax: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= concurrentMax) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      // The turn is handed on rather than freed, so a newcomer cannot overtake who waits.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
