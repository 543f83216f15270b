/**
 * Reads objects out of a pack in process (gitformat-pack(5)), so that a tip's type or a commit's parents cost no
 * process.
 *
 * Must stay true: memory and depth are bounded whatever the pack says; what is beyond the bounds is null, and the
 * caller asks git for it.
 */
import { LRUCache } from 'lru-cache';
import { promisify } from 'node:util';
import { constants, inflate, inflateSync } from 'node:zlib';
import type { ObjectType } from '../../../core/ports/object-database.ts';
import type { FilePages, PagedFile } from './file-pages.ts';
import { applyDelta, deltaSizes } from './pack-delta.ts';
import { inOwnMemory } from './own-memory.ts';
import type { PackIndex } from './pack-index.ts';

/** git's own writers make chains of 50; 4,095 is the most they can be told to. */
const CHAIN_LENGTH_MAX = 4_095;
/** Larger objects are inflated off the event loop. */
const INFLATE_SYNC_BYTES_MAX = 128 * 1024;
/** Only objects up to this size are kept for the next deltas on them. */
const KEPT_OBJECT_BYTES_MAX = 512 * 1024;
/** Type and size (up to ten bytes) and what names the base (up to twenty). */
const ENTRY_HEADER_BYTES = 32;
/** Of a delta's compressed bytes, mostly enough to read the two sizes at its start. */
const DELTA_HEAD_BYTES = 256;
/** Two sizes of up to ten bytes. */
const DELTA_SIZES_BYTES_MAX = 20;
const TRAILER_BYTES = 20;
const OBJECT_TYPES: { readonly [code: number]: ObjectType } = { 1: 'commit', 2: 'tree', 3: 'blob', 4: 'tag' };
const OFS_DELTA = 6;
const REF_DELTA = 7;

export interface StoredObject {
  readonly type: ObjectType;
  readonly bytes: Buffer;
}

/** Objects that deltas were resolved against, shared by all packs. */
export type KeptObjects = LRUCache<string, StoredObject>;

export function createKeptObjects(memoryBytesMax: number): KeptObjects {
  return new LRUCache({ maxSize: memoryBytesMax, sizeCalculation: ({ bytes }) => bytes.length + 256 });
}

export interface PackFile {
  readonly file: PagedFile;
  /** Null when its chain of deltas is longer than one may be. */
  info(offset: number): Promise<{ readonly type: ObjectType; readonly sizeBytes: number } | null>;
  /** Null when it, or something on its chain of deltas, is beyond the bounds. */
  read(offset: number, sizeBytesMax: number): Promise<StoredObject | null>;
}

class PackFileError extends Error {
  override readonly name = 'PackFileError';
}

export function openPackFile(pages: FilePages, kept: KeptObjects, file: PagedFile, index: PackIndex): PackFile {
  const pack: Pack = { pages, kept, index, file };
  return {
    file,
    info: (offset) => infoAt(pack, offset),
    read: (offset, sizeBytesMax) => readAt(pack, offset, sizeBytesMax),
  };
}

interface Pack {
  readonly pages: FilePages;
  readonly kept: KeptObjects;
  readonly index: PackIndex;
  readonly file: PagedFile;
}

interface Entry {
  /** Null for a delta, whose type is its base's. */
  readonly type: ObjectType | null;
  /** Offset of a delta's base. */
  readonly base: number | null;
  /** Of what is stored here: for a delta the instructions, not the object. */
  readonly sizeBytes: number;
  readonly dataStart: number;
}

async function infoAt(pack: Pack, offset: number) {
  let entry = await entryAt(pack, offset);
  if (entry.type !== null) return { type: entry.type, sizeBytes: entry.sizeBytes };
  const { resultBytes } = deltaSizes(await deltaHead(pack, entry));
  for (let depth = 0; depth < CHAIN_LENGTH_MAX; depth += 1) {
    if (entry.base === null) return null;
    entry = await entryAt(pack, entry.base);
    if (entry.type !== null) return { type: entry.type, sizeBytes: resultBytes };
  }
  return null;
}

/** The first bytes of a delta: a deflate block may begin with a table of codes longer than what it says of them. */
async function deltaHead(pack: Pack, entry: Entry): Promise<Buffer> {
  const wanted = Math.min(DELTA_SIZES_BYTES_MAX, entry.sizeBytes);
  for (let window = DELTA_HEAD_BYTES; ; window *= 4) {
    const input = await bytesAt(pack, entry.dataStart, window);
    const head = inflateSync(input, { finishFlush: constants.Z_SYNC_FLUSH });
    if (head.length >= wanted) return head;
    if (input.length < window) throw broken(pack, entry.dataStart);
  }
}

async function readAt(pack: Pack, offset: number, sizeBytesMax: number): Promise<StoredObject | null> {
  const deltas: Buffer[] = [];
  let deltaBytes = 0;
  let at = offset;
  let object = pack.kept.get(keyOf(pack, at)) ?? null;
  while (object === null) {
    const entry = await entryAt(pack, at);
    if (entry.sizeBytes > sizeBytesMax || deltas.length > CHAIN_LENGTH_MAX) return null;
    const bytes = await inflateAt(pack, entry);
    if (entry.type !== null) {
      object = { type: entry.type, bytes };
      keep(pack, at, object);
      break;
    }
    if (deltaSizes(bytes).resultBytes > sizeBytesMax) return null;
    deltas.push(bytes);
    deltaBytes += bytes.length;
    if (deltaBytes > sizeBytesMax || entry.base === null) return null;
    at = entry.base;
    object = pack.kept.get(keyOf(pack, at)) ?? null;
  }
  const { type } = object;
  let { bytes } = object;
  for (let delta = deltas.pop(); delta !== undefined; delta = deltas.pop()) bytes = applyDelta(bytes, delta);
  const result = { type, bytes };
  keep(pack, offset, result);
  return result;
}

function keyOf(pack: Pack, offset: number): string {
  return `${pack.file.number}:${offset}`;
}

function keep(pack: Pack, offset: number, object: StoredObject): void {
  if (object.bytes.length > KEPT_OBJECT_BYTES_MAX) return;
  pack.kept.set(keyOf(pack, offset), { type: object.type, bytes: inOwnMemory(object.bytes) });
}

async function entryAt(pack: Pack, offset: number): Promise<Entry> {
  const head = await bytesAt(pack, offset, ENTRY_HEADER_BYTES);
  let at = 0;
  let byte = head[at++] ?? 0;
  const code = (byte >> 4) & 7;
  let sizeBytes = byte & 0x0f;
  for (let unit = 16; byte >= 0x80; unit *= 128) {
    byte = head[at++] ?? 0;
    sizeBytes += (byte & 0x7f) * unit;
    if (!Number.isSafeInteger(sizeBytes)) throw broken(pack, offset);
  }
  const type = OBJECT_TYPES[code];
  if (type !== undefined) return { type, base: null, sizeBytes, dataStart: offset + at };
  if (code === REF_DELTA) {
    const base = await pack.index.find(head.subarray(at, at + 20));
    if (base === null) throw broken(pack, offset);
    return { type: null, base, sizeBytes, dataStart: offset + at + 20 };
  }
  if (code !== OFS_DELTA) throw broken(pack, offset);
  byte = head[at++] ?? 0;
  let distance = byte & 0x7f;
  while (byte >= 0x80) {
    byte = head[at++] ?? 0;
    distance = (distance + 1) * 128 + (byte & 0x7f);
  }
  if (distance <= 0 || distance > offset) throw broken(pack, offset);
  return { type: null, base: offset - distance, sizeBytes, dataStart: offset + at };
}

async function bytesAt(pack: Pack, start: number, length: number): Promise<Buffer> {
  return pack.pages.peek(pack.file, start, length) ?? (await pack.pages.read(pack.file, start, length));
}

const inflateLater = promisify<Buffer, { maxOutputLength: number; chunkSize: number }, Buffer>(inflate);

async function inflateAt(pack: Pack, entry: Entry): Promise<Buffer> {
  const { sizeBytes, dataStart } = entry;
  const available = pack.file.sizeBytes - TRAILER_BYTES - dataStart;
  const options = { maxOutputLength: sizeBytes + 1, chunkSize: Math.max(64, sizeBytes + 1) };
  // How long the compressed bytes are is not stored: zlib's own bound is nearly always enough.
  for (let window = sizeBytes + (sizeBytes >> 10) + 64; ; window *= 4) {
    const input = await bytesAt(pack, dataStart, Math.min(window, available));
    try {
      const bytes =
        sizeBytes <= INFLATE_SYNC_BYTES_MAX ? inflateSync(input, options) : await inflateLater(input, options);
      if (bytes.length !== sizeBytes) throw broken(pack, dataStart);
      return bytes;
    } catch (error) {
      const short = error instanceof Error && 'code' in error && error.code === 'Z_BUF_ERROR';
      if (!short || window >= available) throw error;
    }
  }
}

function broken(pack: Pack, offset: number): PackFileError {
  return new PackFileError(`${pack.file.path} is broken at byte ${offset}`);
}
