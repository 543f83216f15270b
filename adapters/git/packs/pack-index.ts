/**
 * Finds objects in a pack by its .idx file, version 2 (gitformat-pack(5)).
 *
 * Invariants: looking an id up starts no process and inflates nothing; an incomplete index is refused when it is
 * opened.
 */
import { OBJECT_ID_BYTES, type ObjectId, objectId, PACK_CHECKSUM_BYTES } from '../../../core/kernel/ids.ts';
import { type FilePages, PAGE_BYTES, type PagedFile } from './file-pages.ts';
import { copied } from './own-memory.ts';

/** `\377tOc`, then the version. */
const MAGIC = 0xff744f63;
const VERSION = 2;
const FANOUT_ENTRIES = 256;
const TABLES_START = 8 + FANOUT_ENTRIES * 4;
/** An id, a CRC-32 and a 32-bit offset. */
const ENTRY_BYTES = OBJECT_ID_BYTES + 4 + 4;
/** The checksum of the pack, and that of the index. */
const TRAILER_BYTES = 2 * PACK_CHECKSUM_BYTES;
/** With this bit set, the other bits of an offset are a row of the table of 64-bit offsets. */
const LARGE_OFFSET = 0x80000000;
/**
 * Indexes of up to this many objects stay in memory whole, at 28 bytes an object; larger ones are read by pages.
 * Internal: both ways give the same rows.
 */
const RESIDENT_OBJECTS_MAX = 4_096;

export interface PackIndex {
  readonly objectCount: number;
  readonly file: PagedFile;
  /** The checksum of the pack that it is for, hex. */
  readonly packChecksum: string;
  /** Bytes of memory that it takes while it is open. */
  readonly residentBytes: number;
  /** The object's offset in the pack, or null; a promise only when the file must be read. */
  find(id: Uint8Array): number | null | Promise<number | null>;
  /** The ids of objects `start` to `end` in the order of ids, `OBJECT_ID_BYTES` each. */
  ids(start: number, end: number): Promise<Buffer>;
  /** Every object in the order of ids, or null when the index is too large to be in memory. */
  resident(): readonly { readonly id: ObjectId; readonly offset: number }[] | null;
}

class PackIndexError extends Error {
  override readonly name = 'PackIndexError';
}

export async function openPackIndex(pages: FilePages, file: PagedFile): Promise<PackIndex> {
  const { path } = file;
  const head = await pages.read(file, 0, TABLES_START);
  if (head.length < TABLES_START || head.readUInt32BE(0) !== MAGIC || head.readUInt32BE(4) !== VERSION) {
    throw new PackIndexError(`${path} is no pack index of version 2`);
  }
  const fanout = new Uint32Array(FANOUT_ENTRIES);
  for (let byte = 0; byte < FANOUT_ENTRIES; byte += 1) {
    fanout[byte] = head.readUInt32BE(8 + byte * 4);
    if ((fanout[byte] ?? 0) < (fanout[byte - 1] ?? 0)) throw new PackIndexError(`${path} is not in order`);
  }
  const objectCount = fanout[FANOUT_ENTRIES - 1] ?? 0;
  const smallest = TABLES_START + objectCount * ENTRY_BYTES + TRAILER_BYTES;
  // At most every object but the first may need a 64-bit offset.
  if (file.sizeBytes < smallest || file.sizeBytes > smallest + Math.max(0, objectCount - 1) * 8) {
    throw new PackIndexError(`${path} has ${file.sizeBytes} bytes, which is wrong for ${objectCount} objects`);
  }
  const trailer = await pages.read(file, file.sizeBytes - TRAILER_BYTES, PACK_CHECKSUM_BYTES);
  const about = { objectCount, file, packChecksum: trailer.toString('hex') };
  if (objectCount <= RESIDENT_OBJECTS_MAX) {
    const tables = copied(await pages.read(file, TABLES_START, file.sizeBytes - TABLES_START - TRAILER_BYTES));
    return {
      ...about,
      residentBytes: tables.length,
      ids: async (start, end) => tables.subarray(start * OBJECT_ID_BYTES, Math.min(end, objectCount) * OBJECT_ID_BYTES),
      find: (id) => findResident(tables, objectCount, id),
      resident: () => residentObjects(tables, objectCount),
    };
  }
  return {
    ...about,
    residentBytes: fanout.byteLength,
    ids: (start, end) =>
      pages.read(file, TABLES_START + start * OBJECT_ID_BYTES, (Math.min(end, objectCount) - start) * OBJECT_ID_BYTES),
    find: (id) => findPaged(pages, file, fanout, id),
    resident: () => null,
  };
}

function findResident(tables: Buffer, objectCount: number, id: Uint8Array): number | null {
  let low = 0;
  let high = objectCount;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const order = compareAt(tables, middle * OBJECT_ID_BYTES, id);
    if (order === 0) return offsetOf(tables, objectCount, middle);
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return null;
}

function residentObjects(tables: Buffer, objectCount: number) {
  return Array.from({ length: objectCount }, (_, row) => ({
    id: objectId(tables.toString('hex', row * OBJECT_ID_BYTES, (row + 1) * OBJECT_ID_BYTES)),
    offset: offsetOf(tables, objectCount, row),
  }));
}

function offsetOf(tables: Buffer, objectCount: number, row: number): number {
  const offset = tables.readUInt32BE(objectCount * (OBJECT_ID_BYTES + 4) + row * 4);
  if (offset < LARGE_OFFSET) return offset;
  return Number(tables.readBigUInt64BE(objectCount * ENTRY_BYTES + (offset - LARGE_OFFSET) * 8));
}

/** Finds it immediately where the pages that the search looks at are in memory. */
function findPaged(
  pages: FilePages,
  file: PagedFile,
  fanout: Uint32Array,
  id: Uint8Array,
): number | null | Promise<number | null> {
  const at: RowsAt = {
    order: (start) => {
      const page = pages.page(file, start);
      const offset = start % PAGE_BYTES;
      if (page !== null && offset + OBJECT_ID_BYTES <= page.length) return compareAt(page, offset, id);
      const bytes = pages.peek(file, start, OBJECT_ID_BYTES);
      return bytes === null ? null : compareAt(bytes, 0, id);
    },
    bytes: (start, length) => pages.peek(file, start, length),
  };
  const found = searchPaged(at, fanout, id);
  return found === 'not-in-memory' ? findInFile(pages, file, fanout, id) : found;
}

/** Reads what the search asks for, one thing after the other. */
async function findInFile(
  pages: FilePages,
  file: PagedFile,
  fanout: Uint32Array,
  id: Uint8Array,
): Promise<number | null> {
  const read = new Map<number, Buffer>();
  for (;;) {
    let missing: { readonly start: number; readonly length: number } | null = null;
    const bytes = (start: number, length: number): Buffer | null => {
      const known = read.get(start) ?? pages.peek(file, start, length);
      if (known === null) missing = { start, length };
      return known;
    };
    const order = (start: number): number | null => {
      const row = bytes(start, OBJECT_ID_BYTES);
      return row === null ? null : compareAt(row, 0, id);
    };
    const found = searchPaged({ order, bytes }, fanout, id);
    if (found !== 'not-in-memory') return found;
    if (missing === null) throw new TypeError('A search in memory says that something is missing');
    const { start, length } = missing;
    read.set(start, await pages.read(file, start, length));
  }
}

/** What a search looks at; null for what is not in memory. */
interface RowsAt {
  /** How the id at this byte compares to the one that is searched. */
  order(start: number): number | null;
  bytes(start: number, length: number): Buffer | null;
}

function searchPaged(at: RowsAt, fanout: Uint32Array, id: Uint8Array): number | null | 'not-in-memory' {
  const objectCount = fanout[FANOUT_ENTRIES - 1] ?? 0;
  const first = id[0] ?? 0;
  let low = first === 0 ? 0 : (fanout[first - 1] ?? 0);
  let high = fanout[first] ?? 0;
  // Ids are spread evenly, so the second to fourth byte estimate the position in the bucket.
  let middle = low + Math.floor(((high - low) * prefix(id)) / 0x1000000);
  while (low < high) {
    const order = at.order(TABLES_START + middle * OBJECT_ID_BYTES);
    if (order === null) return 'not-in-memory';
    if (order === 0) return pagedOffset(at, objectCount, middle);
    if (order < 0) low = middle + 1;
    else high = middle;
    middle = (low + high) >>> 1;
  }
  return null;
}

function pagedOffset(at: RowsAt, objectCount: number, row: number): number | 'not-in-memory' {
  const offset = at.bytes(TABLES_START + objectCount * (OBJECT_ID_BYTES + 4) + row * 4, 4)?.readUInt32BE(0);
  if (offset === undefined) return 'not-in-memory';
  if (offset < LARGE_OFFSET) return offset;
  const large = at.bytes(TABLES_START + objectCount * ENTRY_BYTES + (offset - LARGE_OFFSET) * 8, 8);
  return large === null ? 'not-in-memory' : Number(large.readBigUInt64BE(0));
}

function prefix(id: Uint8Array): number {
  return ((id[1] ?? 0) << 16) | ((id[2] ?? 0) << 8) | (id[3] ?? 0);
}

/** Negative when the id at `start` is below `id`, zero when they are equal. */
function compareAt(bytes: Buffer, start: number, id: Uint8Array): number {
  for (let index = 0; index < OBJECT_ID_BYTES; index += 1) {
    const difference = (bytes[start + index] ?? 0) - (id[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Returns the first ids of the index that begin with these hex digits, in order, at most `limit`. */
export async function idsStartingWith(index: PackIndex, digits: string, limit: number): Promise<readonly ObjectId[]> {
  const first = Buffer.from(digits.padEnd(2 * OBJECT_ID_BYTES, '0'), 'hex');
  let low = 0;
  let high = index.objectCount;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareAt(await index.ids(middle, middle + 1), 0, first) < 0) low = middle + 1;
    else high = middle;
  }
  if (low === index.objectCount) return [];
  const bytes = await index.ids(low, Math.min(low + limit, index.objectCount));
  const ids: ObjectId[] = [];
  for (let at = 0; at < bytes.length; at += OBJECT_ID_BYTES) {
    const id = bytes.toString('hex', at, at + OBJECT_ID_BYTES);
    if (!id.startsWith(digits)) break;
    ids.push(objectId(id));
  }
  return ids;
}

/** How many ids are compared in one go: a turn of the event loop of about a millisecond. */
const COMPARED_AT_ONCE = 4_096;

/** Whether an index has every object of another. Reads both once, in order. */
export async function hasAllOf(whole: PackIndex, part: PackIndex): Promise<boolean> {
  if (part.objectCount > whole.objectCount) return false;
  let wanted: { ids: Buffer; at: number; next: number } = { ids: Buffer.alloc(0), at: 0, next: 0 };
  for (let start = 0; start < whole.objectCount; start += COMPARED_AT_ONCE) {
    const ids = await whole.ids(start, start + COMPARED_AT_ONCE);
    for (let row = 0; row < ids.length; row += OBJECT_ID_BYTES) {
      if (wanted.at === wanted.ids.length) {
        if (wanted.next >= part.objectCount) return true;
        const next = Math.min(wanted.next + COMPARED_AT_ONCE, part.objectCount);
        wanted = { ids: await part.ids(wanted.next, next), at: 0, next };
      }
      const order = ids.compare(wanted.ids, wanted.at, wanted.at + OBJECT_ID_BYTES, row, row + OBJECT_ID_BYTES);
      if (order > 0) return false;
      if (order === 0) wanted.at += OBJECT_ID_BYTES;
    }
  }
  return wanted.at === wanted.ids.length && wanted.next >= part.objectCount;
}
