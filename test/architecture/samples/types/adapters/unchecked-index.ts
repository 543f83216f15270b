// refused: TS2322
export function first(list: readonly string[]): string {
  return list[0];
}
