/** Makes and reads whole indexes of small packs, in version 2 (gitformat-pack(5)). */
import { createHash } from 'node:crypto';
import { OBJECT_ID_BYTES, PACK_CHECKSUM_BYTES } from '../../../core/kernel/ids.ts';

/**
 * The first 31 bits of an offset; larger ones need another table. Internal: only small packs are indexed here.
 */
const OFFSET_MAX = 0x7fffffff;
const START = Buffer.from([0xff, 0x74, 0x4f, 0x63, 0, 0, 0, 2]);
const TABLES_START = START.length + 256 * 4;
/** The checksum of the pack, and that of the index. */
const TRAILER_BYTES = 2 * PACK_CHECKSUM_BYTES;
/** An id, a CRC-32 and an offset. */
const ROW_BYTES = OBJECT_ID_BYTES + 4 + 4;

export interface PackRow {
  /** The bytes of the object's id. */
  readonly id: Buffer;
  readonly offset: number;
  /** The checksum of the bytes of the entry as they are stored. */
  readonly crc32: number;
}

/** Contents of the .idx of a pack with these objects and this checksum. */
export function packIndexFile(rows: readonly PackRow[], checksum: Buffer): Buffer {
  if (rows.some(({ offset }) => offset > OFFSET_MAX)) throw new RangeError('The pack is too large for this table');
  const sorted = rows.toSorted((a, b) => a.id.compare(b.id));
  const fanout = Buffer.alloc(256 * 4);
  let counted = 0;
  for (let byte = 0; byte < 256; byte += 1) {
    while ((sorted[counted]?.id[0] ?? 256) <= byte) counted += 1;
    fanout.writeUInt32BE(counted, byte * 4);
  }
  return withChecksum([
    START,
    fanout,
    ...sorted.map(({ id }) => id),
    numbers(sorted.map(({ crc32 }) => crc32)),
    numbers(sorted.map(({ offset }) => offset)),
    checksum,
  ]);
}

function numbers(values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4);
  return bytes;
}

function withChecksum(parts: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(parts);
  return Buffer.concat([bytes, createHash('sha1').update(bytes).digest()]);
}

/** Returns of how many objects an index of this many bytes is, of a pack below 2 GiB. */
export function objectsIn(idxBytes: number): number {
  return Math.floor((idxBytes - TABLES_START - TRAILER_BYTES) / ROW_BYTES);
}

/** Returns what a whole .idx file says, in the order of ids. Throws if it is not that of a pack below 2 GiB. */
export function packIndexRows(idx: Buffer): readonly PackRow[] {
  const count = idx.length < TABLES_START ? -1 : idx.readUInt32BE(TABLES_START - 4);
  const crcs = TABLES_START + count * OBJECT_ID_BYTES;
  const offsets = crcs + count * 4;
  if (!idx.subarray(0, START.length).equals(START) || idx.length !== offsets + count * 4 + TRAILER_BYTES) {
    throw new RangeError('This is no index of a small pack');
  }
  return Array.from({ length: count }, (_, row) => ({
    id: idx.subarray(TABLES_START + row * OBJECT_ID_BYTES, TABLES_START + (row + 1) * OBJECT_ID_BYTES),
    offset: idx.readUInt32BE(offsets + row * 4),
    crc32: idx.readUInt32BE(crcs + row * 4),
  }));
}
