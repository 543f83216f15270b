// refused: strata(object-id-length-in-one-place)
export function nameOf(line: string): string {
  return line.slice(41);
}
