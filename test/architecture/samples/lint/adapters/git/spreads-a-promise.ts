// refused: typescript(no-misused-spread)
export function options(loaded: Promise<object>): object {
  return { ...loaded };
}
