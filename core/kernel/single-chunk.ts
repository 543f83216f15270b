/** Yields the bytes as one chunk, for stores that take a body chunk by chunk. */
export async function* singleChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
