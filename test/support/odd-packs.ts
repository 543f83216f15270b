/**
 * Small packs of odd shapes, made byte by byte, for the repository of mutated-packs.ts: some that git takes, and some that
 * it refuses. Chance comes upon few of them.
 */
import { deflateSync } from 'node:zlib';
import { deltaSize, rawEntry } from './raw-pack.ts';

export interface OddPack {
  readonly name: string;
  readonly entries: readonly Buffer[];
  /** git itself reads another size than the object has, and nothing else of it is wrong. */
  readonly isMisread?: true;
}

const BASE = Buffer.from('a new base 12');
const BASE_ENTRY = rawEntry({ type: 'blob', bytes: BASE });
const SIZE = BASE.length;

const zeros = (count: number): number[] => Array<number>(count).fill(0x80);

const DELTAS: readonly (readonly [string, readonly number[]])[] = [
  ['of two bytes', [SIZE, 0]],
  ['of three bytes', [0x80 | SIZE, 0, 0]],
  ['of four bytes that makes nothing', [0x80 | SIZE, 0x80, 0, 0]],
  ['that ends in its sizes', [SIZE, ...zeros(3)]],
  ['that makes nothing with an instruction', [SIZE, 0, 1, 0x41]],
  ['with a size of six bytes', [0x80 | SIZE, ...zeros(4), 0, 2, 0x90, 2]],
  ['with a size of nine bytes', [0x80 | SIZE, ...zeros(7), 0, 2, 0x90, 2]],
  ['with a size of 19 bytes', [0x80 | SIZE, ...zeros(17), 0, 2, 0x90, 2]],
  ['with a result of six bytes', [SIZE, 0x82, ...zeros(4), 0, 0x90, 2]],
  ['with a result of nine bytes', [SIZE, 0x82, ...zeros(7), 0, 0x90, 2]],
  ['that copies 64 KiB', [SIZE, ...deltaSize(0x10000), 0x80]],
  ['that copies beyond its base', [SIZE, 5, 0x91, 9, 5]],
  ['that copies its base to the end', [SIZE, 4, 0x91, 9, 4]],
  ['that ends in a copy', [SIZE, 4, 0x91, 9]],
  ['that ends in an insert', [SIZE, 4, 4, 1, 2]],
  ['with a reserved instruction', [SIZE, 4, 4, 1, 2, 3, 4, 0]],
  ['with more behind its result', [SIZE, 4, 4, 1, 2, 3, 4, 1, 5]],
  ['that makes too little', [SIZE, 5, 4, 1, 2, 3, 4]],
  ['that makes too much', [SIZE, 3, 4, 1, 2, 3, 4]],
  ['of a base of another size', [SIZE - 1, 4, 4, 1, 2, 3, 4]],
  ['with an offset of four bytes', [SIZE, 4, 0xff, 8, 0, 0, 0, 4, 0, 0]],
  ['with a far offset', [SIZE, 4, 0x98, 1, 4]],
  ['that copies its base', [SIZE, SIZE, 0x90, SIZE]],
];

/** A new object, and behind it these bytes as a delta of it. */
function deltaEntries(delta: readonly number[]): readonly Buffer[] {
  return [BASE_ENTRY, rawEntry({ type: 'ofs-delta', distance: BASE_ENTRY.length, bytes: Buffer.from(delta) })];
}

/** A blob of three bytes whose size is written in this many further bytes. */
function overlong(bytes: number): Buffer {
  return Buffer.concat([Buffer.from([0xb3, ...zeros(bytes - 1), 0]), deflateSync(Buffer.from('abc'))]);
}

const EMPTY = rawEntry({ type: 'blob', bytes: Buffer.alloc(0) });
const MISREAD = new Set(['that ends in its sizes', 'with a size of 19 bytes']);

export const ODD_PACKS: readonly OddPack[] = [
  ...DELTAS.map(([name, delta]) => ({
    name: `a delta ${name}`,
    entries: deltaEntries(delta),
    ...(MISREAD.has(name) ? { isMisread: true as const } : {}),
  })),
  ...[1, 7, 8, 9, 10, 15, 25, 40].map((bytes) => ({
    name: `a size in ${bytes} more bytes`,
    entries: [overlong(bytes)],
  })),
  { name: 'an empty blob', entries: [EMPTY] },
  {
    name: 'a delta of an empty blob',
    entries: [
      EMPTY,
      rawEntry({ type: 'ofs-delta', distance: EMPTY.length, bytes: Buffer.from([0, 3, 3, 65, 66, 67]) }),
    ],
  },
];
