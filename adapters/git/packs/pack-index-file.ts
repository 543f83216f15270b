/** Makes the index of a pack, in version 2 (gitformat-pack(5)). */
import { createHash } from 'node:crypto';

/** The first 31 bits of an offset; larger ones need another table. */
const OFFSET_MAX = 0x7fffffff;

export interface PackRow {
  /** The object's id, 20 bytes. */
  readonly id: Buffer;
  readonly offset: number;
  /** Of the entry as it is stored. */
  readonly crc32: number;
}

/** Contents of the .idx of a pack with these objects and this checksum, 20 bytes. */
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
    Buffer.from([0xff, 0x74, 0x4f, 0x63, 0, 0, 0, 2]),
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
