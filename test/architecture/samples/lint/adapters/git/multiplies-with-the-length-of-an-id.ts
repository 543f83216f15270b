// refused: strata(object-id-length-in-one-place)
export function idAtRow(ids: Uint8Array, row: number, start: number): number {
  return ids[start + 20 * row] ?? 0;
}
