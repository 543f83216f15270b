/**
 * Copies bytes that are to be kept, unless their memory is their own: Node and zlib cut small buffers from larger ones,
 * and who keeps one keeps all that it was cut from.
 */
export function inOwnMemory(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}
