/**
 * Small packs of odd shapes, made byte by byte, for the repository of mutated-packs.ts: some that git takes, and some
 * that it refuses. Chance comes upon few of them.
 */
import { deflateRawSync, deflateSync } from 'node:zlib';
import { DOCS, GUIDE, idOf, overlongEntry, tree } from './mutated-packs.ts';
import { deltaSize, rawEntry, rawId } from './raw-pack.ts';

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

/** A blob of three bytes, deflated as this. */
function streamEntries(stream: Buffer): readonly Buffer[] {
  return [Buffer.concat([Buffer.from([0x33]), stream])];
}

const ABC = Buffer.from('abc');
/** What a zlib stream of the three bytes ends with. */
const ADLER32 = Buffer.from([0x02, 0x4d, 0x01, 0x27]);
const NO_BYTES = Buffer.from([0, 0, 0, 0xff, 0xff]);
const STORED = Buffer.from([0, 3, 0, 0xfc, 0xff, 97, 98, 99]);
const LAST = Buffer.from([1, 0, 0, 0xff, 0xff]);
/** The two bytes that a stream begins with: how it is compressed, and a check of that. */
const zlibHead = (method: number): Buffer => Buffer.from([method, 31 - ((method << 8) % 31)]);
const blocks = (...parts: readonly Buffer[]): Buffer => Buffer.concat([zlibHead(0x78), ...parts, LAST, ADLER32]);
const times = (count: number, part: Buffer): Buffer => Buffer.concat(Array<Buffer>(count).fill(part));

const STREAMS: readonly (readonly [string, Buffer])[] = [
  ['without a head', deflateRawSync(ABC)],
  ['without its checksum', deflateSync(ABC).subarray(0, -1)],
  ['with a wrong checksum', Buffer.concat([deflateSync(ABC).subarray(0, -1), Buffer.from('x')])],
  ['of a dictionary', deflateSync(ABC, { dictionary: ABC })],
  ['of one byte too many', deflateSync(Buffer.from('abcd'))],
  ['of one byte too few', deflateSync(Buffer.from('ab'))],
  ['of a small window', deflateSync(ABC, { windowBits: 9 })],
  ['of a window of 256 bytes', Buffer.concat([zlibHead(0x08), deflateSync(ABC).subarray(2)])],
  ['of a window of 64 KiB', Buffer.concat([zlibHead(0x88), deflateSync(ABC).subarray(2)])],
  ['of 200 empty blocks before its bytes', blocks(times(200, NO_BYTES), STORED)],
  ['of 3,000 empty blocks behind its bytes', blocks(STORED, times(3_000, NO_BYTES))],
];

const file = (name: string, mode = '100644') => ({ mode, name, id: idOf(GUIDE) });
const folder = (name: string) => ({ mode: '40000', name, id: idOf(tree(DOCS)) });

const TREES: readonly (readonly [string, Parameters<typeof tree>[0]])[] = [
  ['a file and a folder of one name', [file('a'), file('a.b'), folder('a')]],
  ['a submodule and a folder of one name', [file('a', '160000'), file('a.b'), folder('a')]],
  ['a folder before what sorts before it', [folder('a'), file('a-')]],
  ['a file that is a folder', [{ ...folder('a'), mode: '100644' }]],
  ['a folder that is a file', [file('a', '40000')]],
  ['a link that is a folder', [{ ...folder('a'), mode: '120000' }]],
  ['a submodule that is a file', [file('a', '160000')]],
  ['a folder .gitattributes', [folder('.gitattributes')]],
  ['a link .gitattributes', [file('.gitattributes', '120000')]],
  ['a submodule .gitattributes', [file('.gitattributes', '160000')]],
  ['a program .gitattributes', [file('.gitattributes', '100755')]],
];

/** A chain of deltas of one another: `isForward` puts each before its base. */
function chainEntries(length: number, isForward: boolean): readonly Buffer[] {
  const text = (version: number) => Buffer.from(`version ${String(version).padStart(4, '0')}`);
  const entries = [rawEntry({ type: 'blob', bytes: text(0) })];
  for (let version = 1; version < length; version += 1) {
    const delta = Buffer.concat([Buffer.from([12, 12, 12]), text(version)]);
    entries.push(rawEntry({ type: 'ref-delta', base: rawId('blob', text(version - 1)), bytes: delta }));
  }
  return isForward ? entries.toReversed() : entries;
}

/** A new object that is made from a committed one, and the committed one made from it. */
function circleEntries(): readonly Buffer[] {
  const { length } = GUIDE.bytes;
  const copy = Buffer.from([0xb0, length & 0xff, length >> 8]);
  const longer = Buffer.concat([deltaSize(length), deltaSize(length + 1), copy, Buffer.from([1, 0x78])]);
  const first = rawEntry({ type: 'ref-delta', base: idOf(GUIDE), bytes: longer });
  const shorter = Buffer.concat([deltaSize(length + 1), deltaSize(length), copy]);
  return [first, rawEntry({ type: 'ofs-delta', distance: first.length, bytes: shorter })];
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
    entries: [overlongEntry(rawEntry({ type: 'blob', bytes: ABC }), bytes)],
  })),
  ...STREAMS.map(([name, stream]) => ({ name: `a stream ${name}`, entries: streamEntries(stream) })),
  ...TREES.map(([name, entries]) => ({ name, entries: [rawEntry(tree(entries))] })),
  { name: 'an object twice', entries: [BASE_ENTRY, BASE_ENTRY] },
  { name: 'a circle of deltas through an object that is known', entries: circleEntries() },
  { name: 'an object that is known', entries: [BASE_ENTRY, rawEntry(GUIDE)] },
  { name: 'a chain of 100 deltas', entries: chainEntries(100, false) },
  { name: 'a chain of 100 deltas, each before its base', entries: chainEntries(100, true) },
  { name: 'an empty blob', entries: [EMPTY] },
  {
    name: 'a delta of an empty blob',
    entries: [
      EMPTY,
      rawEntry({ type: 'ofs-delta', distance: EMPTY.length, bytes: Buffer.from([0, 3, 3, 65, 66, 67]) }),
    ],
  },
];
