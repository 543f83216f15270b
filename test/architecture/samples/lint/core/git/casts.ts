// refused: strata(no-cast-outside-parser)
type RefName = string & { readonly brand: unique symbol };

export function mainBranch(): RefName {
  return 'refs/heads/main' as RefName;
}
