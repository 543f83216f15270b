/**
 * Resolves deltas: objects stored as the difference to another one (gitformat-pack(5), "Deltified representation").
 *
 * Must stay true: whatever a delta contains, nothing is read outside its base and nothing written outside its result.
 */

class PackDeltaError extends Error {
  override readonly name = 'PackDeltaError';
}

/** The sizes at a delta's start, and the offset of its instructions. Needs the delta's first 20 bytes. */
export function deltaSizes(delta: Uint8Array): {
  readonly baseBytes: number;
  readonly resultBytes: number;
  readonly start: number;
} {
  const base = sizeAt(delta, 0);
  const result = sizeAt(delta, base.next);
  return { baseBytes: base.size, resultBytes: result.size, start: result.next };
}

/** Little-endian groups of seven bits; the highest bit of a byte is set when another one follows. */
function sizeAt(bytes: Uint8Array, start: number): { readonly size: number; readonly next: number } {
  let size = 0;
  let unit = 1;
  for (let next = start; ; next += 1) {
    const byte = bytes[next];
    if (byte === undefined || unit > 2 ** 49) throw new PackDeltaError('A delta has no size');
    size += (byte & 0x7f) * unit;
    unit *= 128;
    if (byte < 0x80) return { size, next: next + 1 };
  }
}

/** Returns the object that a delta makes from its base. Throws when the delta is broken or has another base. */
export function applyDelta(base: Uint8Array, delta: Uint8Array): Buffer {
  const { baseBytes, resultBytes, start } = deltaSizes(delta);
  if (baseBytes !== base.length) throw new PackDeltaError('A delta is for a base of another size');
  const result = Buffer.allocUnsafe(resultBytes);
  let written = 0;
  for (let at = start; at < delta.length; ) {
    const instruction = delta[at] ?? 0;
    at += 1;
    if (instruction === 0) throw new PackDeltaError('A delta has a reserved instruction');
    if (instruction < 0x80) {
      if (at + instruction > delta.length || written + instruction > resultBytes) throw outside();
      result.set(delta.subarray(at, at + instruction), written);
      at += instruction;
      written += instruction;
      continue;
    }
    let offset = 0;
    let length = 0;
    for (let byte = 0; byte < 4; byte += 1) if (instruction & (1 << byte)) offset += (delta[at++] ?? 0) * 256 ** byte;
    for (let byte = 0; byte < 3; byte += 1) {
      if (instruction & (0x10 << byte)) length += (delta[at++] ?? 0) * 256 ** byte;
    }
    if (length === 0) length = 0x10000;
    if (at > delta.length || offset + length > base.length || written + length > resultBytes) throw outside();
    result.set(base.subarray(offset, offset + length), written);
    written += length;
  }
  if (written !== resultBytes) throw new PackDeltaError('A delta does not fill its result');
  return result;
}

function outside(): PackDeltaError {
  return new PackDeltaError('A delta reaches outside its base or its result');
}
