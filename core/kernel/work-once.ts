/**
 * Work that several requests want at the same time, and one does for all.
 *
 * Invariants: work that fails is nobody's answer but that of the request which did it: it may have failed because its
 * own client left. Another one that waits then does it.
 */

/** The work under way, by what it is about. */
export type WorkUnderWay<Key, Result> = Map<Key, Promise<Result>>;

/** Waits for the result of whoever works at it, or does the work. `signal` ends the wait. */
export async function workOnce<Key, Result>(
  underWay: WorkUnderWay<Key, Result>,
  key: Key,
  work: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  for (let other = underWay.get(key); other !== undefined; other = underWay.get(key)) {
    const found = await other.then(
      (result) => ({ result }),
      () => null,
    );
    signal?.throwIfAborted();
    if (found !== null) return found.result;
  }
  const working = work().finally(() => underWay.delete(key));
  underWay.set(key, working);
  return working;
}
