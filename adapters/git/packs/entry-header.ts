/**
 * The start of an entry of a pack: its type, its size, and of a delta which object it is made from (gitformat-pack(5)).
 * It is read here and written.
 *
 * Invariants: no bytes make it throw or read beyond them; null is a header that is broken, or longer than the bytes.
 */
import type { ObjectType } from '../../../core/git/objects.ts';
import { OBJECT_ID_BYTES } from '../../../core/kernel/ids.ts';

const TYPES: { readonly [code: number]: ObjectType } = { 1: 'commit', 2: 'tree', 3: 'blob', 4: 'tag' };
const CODES = { commit: 1, tree: 2, blob: 3, tag: 4 } as const;
const OFS_DELTA = 6;
const REF_DELTA = 7;
/** git index-pack takes longer sizes; the rest of git calls the header of such an object bad, and dies of it. */
export const SIZE_BYTES_MAX = 9;

/** For a delta, `base` is its distance in bytes behind its base, or the bytes of the base's id. */
export type EntryHeader = {
  /** The inflated size of what is stored: for a delta its instructions, not the object. */
  readonly sizeBytes: number;
  /** Bytes of the header itself. */
  readonly length: number;
} & ({ readonly type: ObjectType; readonly base: null } | { readonly type: null; readonly base: number | Buffer });

/** Parses the header that the bytes begin with. Of an entry in a file, 40 bytes are enough. */
export function entryHeader(bytes: Buffer): EntryHeader | null {
  let at = 0;
  let byte = bytes[at++] ?? 0;
  const code = (byte >> 4) & 7;
  let sizeBytes = byte & 0x0f;
  for (let unit = 16; byte >= 0x80; unit *= 128) {
    byte = bytes[at++] ?? 0;
    sizeBytes += (byte & 0x7f) * unit;
    if (at > SIZE_BYTES_MAX || !Number.isSafeInteger(sizeBytes)) return null;
  }
  const type = TYPES[code];
  if (type !== undefined) return at > bytes.length ? null : { type, base: null, sizeBytes, length: at };
  if (code === REF_DELTA) {
    const base = bytes.subarray(at, at + OBJECT_ID_BYTES);
    return base.length < OBJECT_ID_BYTES ? null : { type: null, base, sizeBytes, length: at + OBJECT_ID_BYTES };
  }
  if (code !== OFS_DELTA) return null;
  byte = bytes[at++] ?? 0;
  let distance = byte & 0x7f;
  while (byte >= 0x80) {
    byte = bytes[at++] ?? 0;
    distance = (distance + 1) * 128 + (byte & 0x7f);
    if (!Number.isSafeInteger(distance)) return null;
  }
  return distance <= 0 || at > bytes.length ? null : { type: null, base: distance, sizeBytes, length: at };
}

/** The header of a whole object of this many bytes. */
export function wholeHeader(type: ObjectType, sizeBytes: number): Buffer {
  return Buffer.from(typeAndSize(CODES[type], sizeBytes));
}

/** The header of a delta of this many bytes, which stands this many bytes behind its base. */
export function deltaHeader(sizeBytes: number, distance: number): Buffer {
  const groups = [distance % 128];
  for (let rest = Math.floor(distance / 128); rest > 0; rest = Math.floor(rest / 128)) {
    rest -= 1;
    groups.unshift((rest % 128) | 0x80);
  }
  return Buffer.from([...typeAndSize(OFS_DELTA, sizeBytes), ...groups]);
}

function typeAndSize(code: number, sizeBytes: number): number[] {
  const header = [(code << 4) | (sizeBytes & 0x0f)];
  for (let rest = Math.floor(sizeBytes / 16); rest > 0; rest = Math.floor(rest / 128)) {
    header[header.length - 1] = (header.at(-1) ?? 0) | 0x80;
    header.push(rest % 128);
  }
  return header;
}
