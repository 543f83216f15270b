/**
 * Medians and percentiles of what was measured.
 *
 * Must stay true: no value is dropped or smoothed; an empty list has no median, so callers never pass one.
 */

/** The middle value, or the mean of the two in the middle. Throws on an empty list. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  const lower = sorted[middle - 1];
  if (upper === undefined) throw new RangeError('The median of nothing was asked for');
  return sorted.length % 2 === 1 || lower === undefined ? upper : (lower + upper) / 2;
}

/** The nearest-rank percentile: the smallest value with at least `fraction` of all at or below it. */
export function percentile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)];
  if (value === undefined) throw new RangeError('A percentile of nothing was asked for');
  return value;
}
