/**
 * The paths of all files below a tree, packed, and those of them that contain a text, the best first.
 *
 * Invariants: a list is in git's order (`git ls-tree -r`) and bounded in paths and bytes; none is made beyond a bound.
 * Letters are compared in any case. Every path that contains the text has exactly one place in the result, so that all
 * pages together hold each of them once.
 */
import { KIB, MIB } from '../kernel/byte-units.ts';
import type { Page, PageOf } from '../kernel/page.ts';
import type { NextTurn } from '../kernel/turns.ts';
import { ByteLines } from './byte-lines.ts';
import { decodeUtf8Lossy } from './utf8.ts';

/** Paths of one list, their bytes together, and those of one of them. */
export const FILE_LIST_PATHS_MAX = 300_000;
export const FILE_LIST_BYTES_MAX = 24 * MIB;
export const FILE_LIST_PATH_BYTES_MAX = 64 * KIB;

const KINDS = ['file', 'symlink', 'submodule'] as const;
export type ListedKind = (typeof KINDS)[number];

export interface ListedFile {
  readonly path: Uint8Array;
  readonly kind: ListedKind;
}

export interface FileList {
  readonly count: number;
  /** How many of them are files: neither links nor submodules. */
  readonly files: number;
  /** About what the list takes in memory. */
  readonly memoryBytes: number;
  readonly parts: readonly Part[];
}

/** Some paths that follow each other. */
interface Part {
  /** The place of the first one in the list. */
  readonly first: number;
  /** The paths one after the other, and where each ends. */
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
  readonly kinds: Uint8Array;
  /** The paths in one case, with a NUL behind each, and where each ends. */
  readonly folded: string;
  readonly foldedEnds: Uint32Array;
}

export interface FileListMaking {
  /** Takes bytes of `git ls-tree -r -z`. Returns false if the list exceeds a bound: then there is none. */
  add(chunk: Uint8Array): boolean;
  end(): FileList;
}

/** A part is searched in one go, within a few milliseconds: it has no more bytes, or no more paths. */
const PART_BYTES = 64 * KIB;
const PART_PATHS = 2_000;
/** Before a path git writes `<mode> <type> <id>` and a tab. */
const HEAD_BYTES = 128;
const NUL = 0;
const TAB = 0x09;

export function startFileList(): FileListMaking {
  const records = new ByteLines(NUL, HEAD_BYTES + FILE_LIST_PATH_BYTES_MAX);
  const parts: Part[] = [];
  let part = startPart(0);
  let [count, files, bytes] = [0, 0, 0];
  const closePart = (): void => {
    if (part.count() > 0) parts.push(part.end());
    part = startPart(count);
  };
  const take = (record: Uint8Array): boolean => {
    const path = record.subarray(record.indexOf(TAB) + 1);
    const kind = kindOf(record);
    count += 1;
    bytes += path.length;
    if (count > FILE_LIST_PATHS_MAX || bytes > FILE_LIST_BYTES_MAX || path.length > FILE_LIST_PATH_BYTES_MAX) {
      return false;
    }
    if (kind === 'file') files += 1;
    part.add(path, kind);
    if (part.bytes() >= PART_BYTES || part.count() >= PART_PATHS) closePart();
    return true;
  };
  return {
    add(chunk) {
      for (let at = 0; at < chunk.length; ) {
        at = records.take(chunk, at);
        const piece = records.next();
        if (piece !== null && (piece.cut || !take(piece.bytes))) return false;
      }
      return true;
    },
    end() {
      closePart();
      return { count, files, memoryBytes: parts.reduce((sum, each) => sum + memoryOf(each), LIST_BYTES), parts };
    },
  };
}

/** The second digit of the mode: 120000 is a link and 160000 a submodule. Old histories have odd modes of files. */
const LINK_DIGIT = 0x32;
const SUBMODULE_DIGIT = 0x36;

function kindOf(record: Uint8Array): ListedKind {
  if (record[1] === LINK_DIGIT) return 'symlink';
  return record[1] === SUBMODULE_DIGIT ? 'submodule' : 'file';
}

function startPart(first: number) {
  const paths: Uint8Array[] = [];
  const kinds: number[] = [];
  let length = 0;
  return {
    count: () => paths.length,
    bytes: () => length,
    add(path: Uint8Array, kind: ListedKind): void {
      paths.push(path.slice());
      kinds.push(KINDS.indexOf(kind));
      length += path.length;
    },
    end(): Part {
      const bytes = new Uint8Array(length);
      const ends = new Uint32Array(paths.length);
      const foldedEnds = new Uint32Array(paths.length);
      const texts: string[] = [];
      let [at, foldedAt] = [0, 0];
      for (const [index, path] of paths.entries()) {
        bytes.set(path, at);
        at += path.length;
        ends[index] = at;
        const text = folded(decodeUtf8Lossy(path));
        texts.push(text);
        foldedEnds[index] = foldedAt + text.length;
        foldedAt += text.length + 1;
      }
      return { first, bytes, ends, kinds: Uint8Array.from(kinds), folded: `${texts.join('\0')}\0`, foldedEnds };
    },
  };
}

/** The objects of a list, and of a part. */
const LIST_BYTES = 500;
const PART_OVERHEAD_BYTES = 800;

/** A text with characters beyond Latin-1 takes two bytes for each. */
function memoryOf({ bytes, ends, kinds, folded: text, foldedEnds }: Part): number {
  const own = bytes.length + ends.byteLength + kinds.length + foldedEnds.byteLength;
  return PART_OVERHEAD_BYTES + own + 2 * text.length;
}

/** Letters whose lower case depends on what is beside them have one form here. */
function folded(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ');
}

/** Returns a page of the files whose path contains the text, the best first; without a text all, in git's order. */
export async function findInList(
  list: FileList,
  text: string,
  { offset, limit }: Page,
  nextTurn: NextTurn,
): Promise<PageOf<ListedFile>> {
  if (text === '') {
    const end = Math.min(offset + limit, list.count);
    const items: ListedFile[] = [];
    for (let place = offset; place < end; place += 1) items.push(fileAt(list, place));
    return { items, total: list.count };
  }
  const found: Found = { places: [], keys: [] };
  // No path holds NUL, which stands between them.
  for (const [index, part] of (text.includes('\0') ? [] : list.parts).entries()) {
    findInPart(part, text, found);
    if (index % PARTS_OF_A_TURN === 0) await nextTurn();
  }
  const places = await pageOfBest(found, offset, offset + limit, nextTurn);
  return { items: places.map((place) => fileAt(list, place)), total: found.places.length };
}

/** A few milliseconds, if all of their paths are found. */
const PARTS_OF_A_TURN = 2;

interface Found {
  /** Places in the list, ascending. */
  readonly places: number[];
  /** How good each is: the least is the best. */
  readonly keys: number[];
}

function findInPart({ first, bytes, ends, folded: texts, foldedEnds }: Part, text: string, found: Found): void {
  const wanted = folded(text);
  // Who types a capital letter means it, so that paths which have it come first.
  const exact = wanted === text ? null : text;
  let index = 0;
  for (let at = texts.indexOf(wanted); at !== -1; at = texts.indexOf(wanted, foldedEnds[index - 1])) {
    index = firstBeyond(foldedEnds, at, index);
    const start = index === 0 ? 0 : (foldedEnds[index - 1] ?? 0) + 1;
    const rank = rankOf(texts, { start, end: foldedEnds[index] ?? 0, at }, wanted);
    const path = bytes.subarray(index === 0 ? 0 : ends[index - 1], ends[index]);
    const isOther = exact !== null && !decodeUtf8Lossy(path).includes(exact);
    found.places.push(first + index);
    found.keys.push(keyOf(rank, isOther, path.length));
    index += 1;
  }
}

/** Returns the first index, from `from` on, whose end is behind the place. */
function firstBeyond(ends: Uint32Array, place: number, from: number): number {
  let [low, high] = [from, ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 0) > place) high = middle;
    else low = middle + 1;
  }
  return low;
}

interface Occurrence {
  /** Where the path begins and ends, and where the text is first found in it. */
  readonly start: number;
  readonly end: number;
  readonly at: number;
}

/** The ranks of a path, the best first. */
const NAME = 0;
const NAME_WITHOUT_ENDING = 1;
const START_OF_NAME = 2;
const START_OF_WORD = 3;
const IN_NAME = 4;
const START_OF_FOLDER = 5;
const IN_PATH = 6;
const RANKS = 7;

function rankOf(texts: string, { start, end, at }: Occurrence, wanted: string): number {
  const isStart = (place: number): boolean => place === start || texts[place - 1] === '/';
  if (wanted.includes('/')) {
    const last = end - wanted.length;
    if (texts.startsWith(wanted, last) && isStart(last)) return last === start ? NAME : NAME_WITHOUT_ENDING;
    if (at === start) return START_OF_NAME;
    return isStart(at) ? START_OF_FOLDER : IN_PATH;
  }
  let name = end;
  // Not `lastIndexOf`, which would go on through all the paths before this one if it holds no slash.
  while (name > start && texts[name - 1] !== '/') name -= 1;
  const inName = at >= name ? at : texts.indexOf(wanted, name);
  if (inName === -1 || inName >= end) return isStart(at) ? START_OF_FOLDER : IN_PATH;
  if (inName > name) return /[\p{L}\p{N}]/u.test(texts[inName - 1] ?? '') ? IN_NAME : START_OF_WORD;
  const behind = inName + wanted.length;
  if (behind === end) return NAME;
  return texts[behind] === '.' ? NAME_WITHOUT_ENDING : START_OF_NAME;
}

/** Among paths of one rank the shorter ones are better; beyond this length they are all the same. */
const LENGTH_KEYS = 256;

function keyOf(rank: number, isOther: boolean, length: number): number {
  return (RANKS * Number(isOther) + rank) * LENGTH_KEYS + Math.min(length, LENGTH_KEYS - 1);
}

/** Items between two turns of the event loop. */
const TURN_ITEMS = 20_000;

/** Returns the places from `offset` to `end` in the order of the keys; equal ones keep theirs. */
async function pageOfBest(
  { places, keys }: Found,
  offset: number,
  end: number,
  nextTurn: NextTurn,
): Promise<readonly number[]> {
  // Where those of each key begin.
  const begins = new Uint32Array(2 * RANKS * LENGTH_KEYS + 1);
  for (const [index, key] of keys.entries()) {
    begins[key + 1] = (begins[key + 1] ?? 0) + 1;
    if (index % TURN_ITEMS === TURN_ITEMS - 1) await nextTurn();
  }
  for (let key = 1; key < begins.length; key += 1) begins[key] = (begins[key] ?? 0) + (begins[key - 1] ?? 0);
  const page = Array.from({ length: Math.max(0, Math.min(end, places.length) - offset) }, () => 0);
  for (const [index, key] of keys.entries()) {
    const place = begins[key] ?? 0;
    begins[key] = place + 1;
    if (place >= offset && place < end) page[place - offset] = places[index] ?? 0;
    if (index % TURN_ITEMS === TURN_ITEMS - 1) await nextTurn();
  }
  return page;
}

function fileAt({ parts }: FileList, place: number): ListedFile {
  let [low, high] = [0, parts.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((parts[middle]?.first ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  const part = parts[low];
  if (part === undefined) throw new RangeError(`The list has no place ${place}`);
  const { first, bytes, ends, kinds } = part;
  const index = place - first;
  const path = bytes.subarray(index === 0 ? 0 : ends[index - 1], ends[index]);
  return { path, kind: KINDS[kinds[index] ?? 0] ?? 'file' };
}

/** Returns how many files, neither links nor submodules, stand in the list up to this path; 0 if it is not there. */
export function filesUpTo({ parts }: FileList, path: Uint8Array): number {
  let files = 0;
  for (const { bytes, ends, kinds } of parts) {
    for (const [index, end] of ends.entries()) {
      const start = index === 0 ? 0 : (ends[index - 1] ?? 0);
      if (kinds[index] === 0) files += 1;
      if (end - start === path.length && path.every((byte, at) => byte === bytes[start + at])) return files;
    }
  }
  return 0;
}
