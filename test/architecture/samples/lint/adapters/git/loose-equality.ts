// refused: eslint(eqeqeq)
export function isZero(value: unknown): boolean {
  return value == 0;
}
