/**
 * Reads objects out of a pack in process (gitformat-pack(5)), so that a tip's type or a commit's parents need no git
 * process.
 *
 * Invariants: memory, depth and work are bounded whatever the pack contains; an object beyond the bounds is null, and
 * the caller reads it by git. The event loop has turns within a chain of deltas as between reads (read-turns.ts).
 */
import { promisify } from 'node:util';
import { constants, inflate, inflateSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import type { ObjectType } from '../../../core/git/objects.ts';
import { OBJECT_ID_BYTES, PACK_CHECKSUM_BYTES } from '../../../core/kernel/ids.ts';
import { type MaybePromise, whenReady } from '../../../core/kernel/maybe-promise.ts';
import { type CountedCache, countedCache } from '../../../core/kernel/shown-caches.ts';
import { entryHeader } from './entry-header.ts';
import type { FilePages, PagedFile } from './file-pages.ts';
import { inOwnMemory } from './own-memory.ts';
import { applyDeltaInTurns, deltaSizes, PackDeltaError } from './pack-delta.ts';
import type { PackIndex } from './pack-index.ts';
import { ENTRY_WORK, INSTRUCTION_WORK, type ReadTurns } from './read-turns.ts';

/**
 * git writes chains of 50 deltas by default, and of 4,095 at most (git-pack-objects(1), --depth). Internal: git reads
 * longer chains.
 */
const CHAIN_LENGTH_MAX = 4_095;
/**
 * Longer chains are not resolved in process: it would take as long as to start git. Old versions wrote up to 250.
 * Internal: git reads longer chains.
 */
const CHAIN_READ_LENGTH_MAX = 256;
/** The same for larger chains, by the bytes of their instructions. Internal: git reads larger chains. */
const CHAIN_DELTAS_BYTES_MAX = 1024 * 1024;
/** The base of an object is kept if this many bytes of deltas made it, since more objects may be made from it. */
const COSTLY_DELTAS_BYTES = 64 * 1024;
/**
 * Larger objects, and instructions of deltas, are inflated off the event loop. Internal: both ways give the same bytes.
 */
const INFLATE_SYNC_BYTES_MAX = 128 * 1024;
/** Who reads a larger object waits for its turn, because many together would take gigabytes. */
const LARGE_OBJECT_BYTES = 1024 * 1024;
/**
 * Most bytes written to resolve one chain of deltas: a long chain of large objects would block the event loop.
 * Internal: git reads larger chains.
 */
const CHAIN_RESULTS_BYTES_MAX = 64 * 1024 * 1024;
/**
 * Only objects up to this size are cached, as bases of later deltas; the second is that of costly bases. Internal: what
 * is not kept is read again.
 */
const CACHED_OBJECT_BYTES_MAX = 512 * 1024;
const CACHED_COSTLY_BYTES_MAX = 1024 * 1024;
/** Type and size (up to ten bytes), a delta's reference to its base (an id at most), and some to spare. */
const ENTRY_HEADER_BYTES = 12 + OBJECT_ID_BYTES;
/** Compressed bytes read of a delta at first: mostly enough for the two sizes at its start. */
const DELTA_HEAD_BYTES = 256;
/** Two sizes of up to ten bytes. Internal: it is the form of a delta. */
const DELTA_SIZES_BYTES_MAX = 20;

export interface StoredObject {
  readonly type: ObjectType;
  readonly bytes: Buffer;
}

/** Objects that later deltas may need as their bases, shared by all packs. */
export type ObjectCache = CountedCache<string, StoredObject>;

export function createObjectCache(memoryBytesMax: number): ObjectCache {
  return countedCache(
    'git_objects',
    'memory',
    new LRUCache<string, StoredObject>({ maxSize: memoryBytesMax, sizeCalculation: ({ bytes }) => bytes.length + 256 }),
  );
}

/** What all packs share. */
export interface PackMemory {
  readonly pages: FilePages;
  readonly cache: ObjectCache;
  readonly turns: ReadTurns;
}

export interface PackFile {
  readonly file: PagedFile;
  /**
   * Null when more than `deltasMax` deltas make the object; by default, when they are too many to follow in process.
   */
  info(offset: number, deltasMax?: number): Promise<(FoundType & { readonly sizeBytes: number }) | null>;
  /** Does what `info` does, but inflates nothing. Throws where `info` rejects. */
  type(offset: number, deltasMax?: number): MaybePromise<FoundType | null>;
  /** What `read` has to do for an object; null when more than `deltasMax` deltas make it. */
  cost(offset: number, deltasMax: number): Promise<ObjectCost | null>;
  /**
   * Null when the object, or its chain of deltas, is beyond the bounds. `beforeLarge` is awaited each time before more
   * than `LARGE_OBJECT_BYTES` are inflated or made from a delta.
   */
  read(offset: number, bounds: SizeBounds, beforeLarge?: BeforeLarge): Promise<StoredObject | null>;
}

export interface FoundType {
  readonly type: ObjectType;
  /** Between the object and a whole one, or one in memory. */
  readonly deltas: number;
}

export interface ObjectCost {
  /** Between the object and a whole one, or one in memory. */
  readonly deltas: number;
  /** The bytes of their instructions. */
  readonly deltaBytes: number;
  /** The bytes of the whole object, and of all that the deltas make. */
  readonly madeBytes: number;
}

/** Waits until there is memory for a large object. */
export type BeforeLarge = () => Promise<void>;

/** Bytes of the largest object to read, by type. */
export type SizeBounds = { readonly [Type in ObjectType]: number };

class PackFileError extends Error {
  override readonly name = 'PackFileError';
}

/** Whether reading failed because of the pack's bytes, and would fail again. */
export function isBrokenPack(error: unknown): boolean {
  if (error instanceof PackFileError || error instanceof PackDeltaError) return true;
  return error instanceof Error && 'code' in error && (error.code === 'Z_DATA_ERROR' || error.code === 'Z_BUF_ERROR');
}

export function openPackFile(memory: PackMemory, file: PagedFile, index: PackIndex): PackFile {
  const pack: Pack = { ...memory, index, file };
  return {
    file,
    info: (offset, deltasMax = CHAIN_LENGTH_MAX) => infoAt(pack, offset, deltasMax),
    type: (offset, deltasMax = CHAIN_LENGTH_MAX) => typeAt(pack, offset, deltasMax),
    cost: (offset, deltasMax) => costAt(pack, offset, deltasMax),
    read: (offset, bounds, beforeLarge) => readAt(pack, offset, bounds, beforeLarge ?? NO_WAIT),
  };
}

interface Pack extends PackMemory {
  readonly index: PackIndex;
  readonly file: PagedFile;
}

interface EntryData {
  /** The inflated size of what is stored here: for a delta its instructions, not the object. */
  readonly sizeBytes: number;
  readonly dataStart: number;
}

/** The type of a delta is its base's; `base` is the offset of that. */
type Entry = EntryData &
  ({ readonly type: ObjectType; readonly base: null } | { readonly type: null; readonly base: number });

async function infoAt(pack: Pack, offset: number, deltasMax: number) {
  const cached = pack.cache.get(keyOf(pack, offset));
  if (cached !== undefined) return { type: cached.type, sizeBytes: cached.bytes.length, deltas: 0 };
  const entry = await entryAt(pack, offset);
  if (entry.type !== null) return { type: entry.type, sizeBytes: entry.sizeBytes, deltas: 0 };
  const sizeBytes = deltaSizes(await deltaHead(pack, entry)).resultBytes;
  const base = await typeAt(pack, entry.base, deltasMax - 1);
  return base === null ? null : { type: base.type, sizeBytes, deltas: base.deltas + 1 };
}

function typeAt(pack: Pack, offset: number, deltasMax: number): MaybePromise<FoundType | null> {
  let at = offset;
  for (let deltas = 0; deltas <= deltasMax; deltas += 1) {
    const cached = pack.cache.get(keyOf(pack, at));
    if (cached !== undefined) return { type: cached.type, deltas };
    const entry = entryAt(pack, at);
    if (entry instanceof Promise) return typeLater(pack, entry, deltas, deltasMax);
    if (entry.type !== null) return { type: entry.type, deltas };
    at = entry.base;
  }
  return null;
}

/** Goes on where an entry must be waited for. */
async function typeLater(
  pack: Pack,
  first: Promise<Entry>,
  deltasBefore: number,
  deltasMax: number,
): Promise<FoundType | null> {
  const { type, base } = await first;
  if (type !== null) return { type, deltas: deltasBefore };
  const found = await typeAt(pack, base, deltasMax - deltasBefore - 1);
  return found === null ? null : { type: found.type, deltas: found.deltas + deltasBefore + 1 };
}

async function costAt(pack: Pack, offset: number, deltasMax: number): Promise<ObjectCost | null> {
  let [deltas, deltaBytes, madeBytes] = [0, 0, 0];
  for (let at = offset; !pack.cache.has(keyOf(pack, at)); ) {
    const entry = await entryAt(pack, at);
    if (entry.type !== null) return { deltas, deltaBytes, madeBytes: madeBytes + entry.sizeBytes };
    deltas += 1;
    if (deltas > deltasMax) return null;
    deltaBytes += entry.sizeBytes;
    madeBytes += deltaSizes(await deltaHead(pack, entry)).resultBytes;
    at = entry.base;
  }
  return { deltas, deltaBytes, madeBytes };
}

/** The first inflated bytes of a delta. Reads more where a deflate block begins with a long table of codes. */
async function deltaHead(pack: Pack, entry: Entry): Promise<Buffer> {
  const wanted = Math.min(DELTA_SIZES_BYTES_MAX, entry.sizeBytes);
  for (let window = DELTA_HEAD_BYTES; ; window *= 4) {
    const input = await bytesAt(pack, entry.dataStart, window);
    const head = inflateSync(input, { finishFlush: constants.Z_SYNC_FLUSH });
    if (head.length >= wanted) return head;
    if (input.length < window) throw broken(pack, entry.dataStart);
  }
}

const NO_WAIT: BeforeLarge = async () => undefined;

async function readAt(
  pack: Pack,
  offset: number,
  bounds: SizeBounds,
  beforeLarge: BeforeLarge,
): Promise<StoredObject | null> {
  const chain = await chainAt(pack, offset, bounds, beforeLarge);
  if (chain === null) return null;
  const { base, deltas } = chain;
  let { bytes } = base;
  let appliedBytes = 0;
  for (let delta = deltas.pop(); delta !== undefined; delta = deltas.pop()) {
    const isLast = deltas.length === 0;
    if (isLast && appliedBytes >= COSTLY_DELTAS_BYTES) {
      cacheObject(pack, delta.base, { type: base.type, bytes }, CACHED_COSTLY_BYTES_MAX);
    }
    bytes = await applyDeltaInTurns(bytes, delta.bytes, (done) => pack.turns.spend(done * INSTRUCTION_WORK));
    appliedBytes += delta.bytes.length;
  }
  const result = { type: base.type, bytes };
  cacheObject(pack, offset, result, CACHED_OBJECT_BYTES_MAX);
  return result;
}

interface Delta {
  readonly bytes: Buffer;
  /** The offset of its base. */
  readonly base: number;
}

interface Chain {
  /** A whole object, or one that was resolved before. */
  readonly base: StoredObject;
  /** The delta on the base comes last. */
  readonly deltas: Delta[];
}

/** Reads what an object is made from; null if that is beyond the bounds. */
async function chainAt(
  pack: Pack,
  offset: number,
  bounds: SizeBounds,
  beforeLarge: BeforeLarge,
): Promise<Chain | null> {
  const largest = Math.max(...Object.values(bounds));
  const deltas: Delta[] = [];
  let deltaBytes = 0;
  let resultBytes = 0;
  let largestResult = 0;
  let at = offset;
  let base = pack.cache.get(keyOf(pack, at)) ?? null;
  while (base === null) {
    const entry = await entryAt(pack, at);
    const bytesMax = entry.type === null ? Math.min(largest, CHAIN_DELTAS_BYTES_MAX - deltaBytes) : bounds[entry.type];
    if (entry.sizeBytes > bytesMax || deltas.length > CHAIN_READ_LENGTH_MAX) return null;
    if (entry.sizeBytes > LARGE_OBJECT_BYTES) await beforeLarge();
    const bytes = await inflateAt(pack, entry);
    if (entry.type !== null) {
      base = { type: entry.type, bytes };
      cacheObject(pack, at, base, CACHED_OBJECT_BYTES_MAX);
      break;
    }
    const made = deltaSizes(bytes).resultBytes;
    if (made > LARGE_OBJECT_BYTES) await beforeLarge();
    deltaBytes += bytes.length;
    resultBytes += made;
    largestResult = Math.max(largestResult, made);
    if (resultBytes > CHAIN_RESULTS_BYTES_MAX) return null;
    deltas.push({ bytes, base: entry.base });
    at = entry.base;
    base = pack.cache.get(keyOf(pack, at)) ?? null;
  }
  // All objects of a chain have the type of its last base, which is known only now.
  return largestResult > bounds[base.type] ? null : { base, deltas };
}

function keyOf(pack: Pack, offset: number): string {
  return `${pack.file.number}:${offset}`;
}

function cacheObject(pack: Pack, offset: number, object: StoredObject, bytesMax: number): void {
  if (object.bytes.length > bytesMax) return;
  pack.cache.set(keyOf(pack, offset), { type: object.type, bytes: inOwnMemory(object.bytes) });
}

function entryAt(pack: Pack, offset: number): MaybePromise<Entry> {
  const turn = pack.turns.spend(ENTRY_WORK);
  if (turn !== null) return turn.then(() => entryIn(pack, offset));
  return entryIn(pack, offset);
}

function entryIn(pack: Pack, offset: number): MaybePromise<Entry> {
  const bytes = pack.pages.peek(pack.file, offset, ENTRY_HEADER_BYTES);
  if (bytes !== null) return entryOf(pack, offset, bytes);
  return pack.pages.read(pack.file, offset, ENTRY_HEADER_BYTES).then((read) => entryOf(pack, offset, read));
}

function entryOf(pack: Pack, offset: number, bytes: Buffer): MaybePromise<Entry> {
  const header = entryHeader(bytes);
  if (header === null) throw broken(pack, offset);
  const { type, base, sizeBytes, length } = header;
  const dataStart = offset + length;
  if (type !== null) return { type, base: null, sizeBytes, dataStart };
  return whenReady(typeof base === 'number' ? offset - base : pack.index.find(base), (at) => {
    if (at === null || at < 0) throw broken(pack, offset);
    return { type: null, base: at, sizeBytes, dataStart };
  });
}

async function bytesAt(pack: Pack, start: number, length: number): Promise<Buffer> {
  return pack.pages.peek(pack.file, start, length) ?? (await pack.pages.read(pack.file, start, length));
}

const inflateLater = promisify<Buffer, { maxOutputLength: number; chunkSize: number }, Buffer>(inflate);

async function inflateAt(pack: Pack, entry: Entry): Promise<Buffer> {
  const { sizeBytes, dataStart } = entry;
  const available = pack.file.sizeBytes - PACK_CHECKSUM_BYTES - dataStart;
  const options = { maxOutputLength: sizeBytes + 1, chunkSize: Math.max(64, sizeBytes + 1) };
  // The pack does not store how long the compressed bytes are: zlib's own bound is nearly always enough.
  for (let window = sizeBytes + (sizeBytes >> 10) + 64; ; window *= 4) {
    const input = await bytesAt(pack, dataStart, Math.min(window, available));
    try {
      const isSmall = sizeBytes <= INFLATE_SYNC_BYTES_MAX;
      const turn = isSmall ? pack.turns.spend(sizeBytes) : null;
      if (turn !== null) await turn;
      const bytes = isSmall ? inflateSync(input, options) : await inflateLater(input, options);
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
