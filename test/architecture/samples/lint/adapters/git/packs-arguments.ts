// refused: unicorn(no-useless-spread)
export function largest(one: number, other: number): number {
  return Math.max(...[one, other]);
}
