// refused: strata(object-id-length-in-one-place)
export function emptyId(): Buffer {
  return Buffer.alloc(20);
}
