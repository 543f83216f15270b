/**
 * Copies bytes that are to be kept: Node cuts small buffers from a slab of 64 KiB, and keeping one keeps all of it.
 *
 * Invariants: the returned buffer keeps only its own bytes in memory.
 */
export function inOwnMemory(bytes: Buffer): Buffer {
  return bytes.buffer.byteLength === bytes.length ? bytes : copied(bytes);
}

/** For bytes that others may keep too. */
export function copied(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}
