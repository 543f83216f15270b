// refused: typescript(consistent-type-assertions)
export function parseOptions(): { a: number; b?: number } {
  return { a: 1 } as { a: number; b: number };
}
