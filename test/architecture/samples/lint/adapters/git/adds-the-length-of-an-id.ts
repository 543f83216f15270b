// refused: strata(object-id-length-in-one-place)
export function idAt(bytes: Uint8Array, at: number): Uint8Array {
  return bytes.subarray(at, at + 20);
}
