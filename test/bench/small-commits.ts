/**
 * A chain of small commits and the pack of each, made without starting git: a hundred thousand of them in a minute.
 *
 * Invariants: pack i holds what commit i adds to commit i-1, each object whole, with the index that git would write
 * (gitformat-pack(5)). A number makes the same bytes in every run.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { rawEntry, rawId, rawPack } from '../support/raw-pack.ts';

/** Each commit changes one of them. */
const FILES = 10;
const FIRST_COMMIT_SECONDS = 1_760_000_000;

export interface SmallCommit {
  readonly id: string;
  /** Null for the first. */
  readonly parent: string | null;
  /** The bytes of the pack, and its checksum in hex. */
  readonly pack: Buffer;
  readonly packName: string;
  readonly index: Buffer;
  readonly objectCount: number;
}

export interface SmallCommits {
  /** Makes a child of the last commit. */
  next(): SmallCommit;
  /** Makes a commit that takes the place of the last one, whose commit and tree nothing reaches then. */
  instead(): SmallCommit;
}

export function smallCommits(seed: string): SmallCommits {
  const files = new Map<string, string>();
  let number = 0;
  let last: SmallCommit | null = null;
  const make = (parent: string | null): SmallCommit => {
    const blob = Buffer.from(`${seed} ${number}\n${createHash('sha512').update(`${seed} ${number}`).digest('hex')}\n`);
    files.set(`file-${number % FILES}.txt`, rawId('blob', blob));
    const tree = treeOf(files);
    const who = `Bench <bench@example.org> ${FIRST_COMMIT_SECONDS + number} +0000`;
    const parents: string = parent === null ? '' : `parent ${parent}\n`;
    const head = `tree ${rawId('tree', tree)}\n${parents}author ${who}\ncommitter ${who}\n`;
    const commit = Buffer.from(`${head}\nChange ${number}\n`);
    const made = packed([
      { type: 'commit', bytes: commit },
      { type: 'tree', bytes: tree },
      { type: 'blob', bytes: blob },
    ]);
    const id = rawId('commit', commit);
    last = { id, parent, ...made };
    number += 1;
    return last;
  };
  return { next: () => make(last?.id ?? null), instead: () => make(last?.parent ?? null) };
}

/** git sorts by name; these names have equal lengths. */
function treeOf(files: ReadonlyMap<string, string>): Buffer {
  const sorted = [...files].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Buffer.concat(sorted.flatMap(([name, id]) => [Buffer.from(`100644 ${name}\0`), Buffer.from(id, 'hex')]));
}

interface RawObject {
  readonly type: 'commit' | 'tree' | 'blob';
  readonly bytes: Buffer;
}

const PACK_HEADER_BYTES = 12;

function packed(objects: readonly RawObject[]): Omit<SmallCommit, 'id' | 'parent'> {
  const entries = objects.map(rawEntry);
  const pack = rawPack(entries);
  let offset = PACK_HEADER_BYTES;
  const places = entries.map((entry, index) => {
    const object = objects[index];
    if (object === undefined) throw new RangeError('An entry without an object');
    const place = { id: rawId(object.type, object.bytes), crc: crc32(entry), offset };
    offset += entry.length;
    return place;
  });
  const trailer = pack.subarray(-20);
  return { pack, packName: trailer.toString('hex'), index: packIndex(places, trailer), objectCount: objects.length };
}

interface Place {
  readonly id: string;
  readonly crc: number;
  readonly offset: number;
}

/** Version 2: the fan-out, then ids, checksums and offsets in the order of ids, then the checksums of both files. */
function packIndex(places: readonly Place[], packChecksum: Buffer): Buffer {
  const sorted = places.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const numbers = Buffer.alloc(8 + 256 * 4);
  numbers.write('\xfftOc', 'latin1');
  numbers.writeUInt32BE(2, 4);
  for (let first = 0; first < 256; first += 1) {
    const count = sorted.filter(({ id }) => Number.parseInt(id.slice(0, 2), 16) <= first).length;
    numbers.writeUInt32BE(count, 8 + 4 * first);
  }
  const ids = sorted.map(({ id }) => Buffer.from(id, 'hex'));
  const body = Buffer.concat([numbers, ...ids, words(sorted, 'crc'), words(sorted, 'offset'), packChecksum]);
  return Buffer.concat([body, createHash('sha1').update(body).digest()]);
}

function words(places: readonly Place[], field: 'crc' | 'offset'): Buffer {
  const bytes = Buffer.alloc(4 * places.length);
  for (const [index, place] of places.entries()) bytes.writeUInt32BE(place[field], 4 * index);
  return bytes;
}
