// refused: typescript(no-non-null-assertion)
export function first(list: readonly string[]): string {
  return list[0]!;
}
