// refused: typescript(only-throw-error)
export function fail(): never {
  throw 'it failed';
}
