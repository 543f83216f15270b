// refused: strata(object-id-length-in-one-place)
export function isLong(text: string): boolean {
  return text.length === 40;
}
