// refused: strata(no-cast-outside-parser)
type RefName = string & { readonly brand: unique symbol };

export function branches(names: readonly string[]): RefName[] {
  return names.map((name) => name as RefName);
}
