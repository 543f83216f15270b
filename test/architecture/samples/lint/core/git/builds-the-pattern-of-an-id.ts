// refused: strata(object-id-length-in-one-place)
export function refPattern(name: string): RegExp {
  return new RegExp(`^([0-9a-f]{40}) ${name}$`);
}
