/**
 * Medians and percentiles of measured values.
 *
 * Invariants: no value is dropped or smoothed; an empty list has no median, so callers never pass one.
 */

/** Returns the middle value, or the mean of the two middle values. Throws on an empty list. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  const lower = sorted[middle - 1];
  if (upper === undefined) throw new RangeError('An empty list has no median');
  return sorted.length % 2 === 1 || lower === undefined ? upper : (lower + upper) / 2;
}

/** Returns the nearest-rank percentile: the smallest value with at least `fraction` of all values at or below it. */
export function percentile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)];
  if (value === undefined) throw new RangeError('An empty list has no percentile');
  return value;
}
