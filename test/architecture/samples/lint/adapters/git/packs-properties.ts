// refused: unicorn(no-useless-spread)
export function describe(name: string, size: number): object {
  return { ...{ name, size }, kind: 'pack' };
}
