/**
 * Shares one query among all callers that wait for the same answer.
 *
 * Invariants: a caller gets the answer of a query that was sent after the call, so the answer is at least as new as
 * the call. Only one query runs at a time.
 */

/** Wraps a read: all calls made while one read runs share the next one. */
export function shareRead<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  let next: Promise<T> | null = null;

  function start(): Promise<T> {
    const mine = read().finally(() => {
      if (running === mine) running = null;
    });
    running = mine;
    return mine;
  }

  return () => {
    if (next !== null) return next;
    if (running === null) return start();
    const startNext = () => {
      next = null;
      return start();
    };
    next = running.then(startNext, startNext);
    return next;
  };
}
