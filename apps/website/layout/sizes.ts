/**
 * Byte counts as people read them.
 *
 * Invariants: every page counts in the binary units of the quotas.
 */

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Returns `512 B`, `1.5 MiB` and so on: at most one digit after the point. */
export function sizeText(bytes: number): string {
  let value = bytes;
  let unit: string = 'B';
  for (const larger of UNITS) {
    // 1023.96 would round to 1024.
    if (value < 1_023.95) break;
    value /= 1_024;
    unit = larger;
  }
  const text = unit === 'B' || value >= 99.95 ? value.toFixed(0) : value.toFixed(1).replace(/\.0$/, '');
  return `${text} ${unit}`;
}
