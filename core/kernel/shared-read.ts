/**
 * One query for everyone who waits for the same answer.
 *
 * Must stay true: a caller is answered by a query that was sent after it called, so the answer is as new as the
 * call; and one query is under way at a time.
 */

/** Wraps a read: callers that come while one is under way share the next one. */
export function shareRead<T>(read: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | null = null;
  let next: Promise<T> | null = null;

  function start(): Promise<T> {
    const mine = read().finally(() => {
      if (underWay === mine) underWay = null;
    });
    underWay = mine;
    return mine;
  }

  return () => {
    if (next !== null) return next;
    if (underWay === null) return start();
    const startNext = () => {
      next = null;
      return start();
    };
    next = underWay.then(startNext, startNext);
    return next;
  };
}
