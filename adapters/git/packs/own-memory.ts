/**
 * Bytes for keeping: Node cuts small buffers from a slab of 64 KiB, and one that is kept keeps all of that.
 *
 * Must stay true: what is returned holds its own bytes in memory and no others.
 */
export function inOwnMemory(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}
