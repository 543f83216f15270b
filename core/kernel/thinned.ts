/**
 * Which of many numbered things to keep, so that few stay and any old one has a kept one not far before it.
 *
 * Invariants: what is kept of a series is kept of the same series one longer, or one close to it is: the rule may
 * be applied again and again.
 */

/** The newest are all kept. */
const WHOLE = 4;
/** About this many are kept at a distance between n and 2n behind the newest. */
const PER_DOUBLING = 4;

/** Returns the numbers to drop. Distances are counted in steps of `unit`. */
export function thinnedOut(numbers: readonly number[], unit: number): readonly number[] {
  const sorted = numbers.toSorted((a, b) => b - a);
  const newest = sorted[0] ?? 0;
  const kept = new Set<number>();
  // From the oldest on: the first of each range stays until it leaves the range.
  return sorted
    .slice(WHOLE)
    .toReversed()
    .filter((number) => {
      const range = Math.floor(PER_DOUBLING * Math.log2(Math.max(1, (newest - number) / unit)));
      if (kept.has(range)) return true;
      kept.add(range);
      return false;
    });
}
