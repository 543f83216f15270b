/**
 * Which of many parts to merge so that few stay and each byte is rewritten a logarithmic number of times: the rule of
 * git's geometric repack (git-repack(1)).
 */

/** A part stays alone if it is more than this many times as large as all smaller ones together. */
const GROWTH = 2;

/** Returns all parts but the largest ones that each outweigh all smaller ones, the smallest first. */
export function partsToMerge<Part>(parts: Iterable<Part>, sizeOf: (part: Part) => number): readonly Part[] {
  const sorted = [...parts].sort((a, b) => sizeOf(a) - sizeOf(b));
  let smaller = sorted.reduce((sum, part) => sum + sizeOf(part), 0);
  let count = sorted.length;
  for (const part of sorted.toReversed()) {
    smaller -= sizeOf(part);
    if (sizeOf(part) <= GROWTH * smaller) break;
    count -= 1;
  }
  return sorted.slice(0, count);
}
