// refused: strata(object-id-length-in-one-place)
export function endsId(line: string): boolean {
  return line[40] === ' ';
}
