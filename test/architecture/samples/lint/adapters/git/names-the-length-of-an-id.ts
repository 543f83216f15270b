// refused: strata(object-id-length-in-one-place)
const ID_BYTES = 20;

export function rows(bytes: number): number {
  return bytes / ID_BYTES;
}
