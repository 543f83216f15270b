/**
 * Checks and indexes a small pack in process, as git index-pack would, when everything in it is plain
 * (plain-objects.ts): most pushes are such, and starting git takes longer than all the rest of them.
 *
 * Invariants: it accepts nothing that git would refuse. Whatever is unusual, large, broken or known already is left to
 * git, which decides, and says why. A pack has the event loop for a few milliseconds at a time, starts no git, and
 * takes no longer than git would, whatever was committed before. It takes 2 MiB of memory at most.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { crc32, deflate, deflateSync, inflateSync } from 'node:zlib';
import type { ObjectInfo, ObjectType } from '../../../core/git/objects.ts';
import { type ObjectId, objectId, PACK_CHECKSUM_BYTES } from '../../../core/kernel/ids.ts';
import { entryHeader, wholeHeader } from '../packs/entry-header.ts';
import { createTurns, type Turns } from '../packs/event-loop-turns.ts';
import type { PackBytes } from '../packs/joined-pack.ts';
import { readInTurn } from '../packs/object-graph.ts';
import type { HashObject } from '../packs/object-hash.ts';
import type { ObjectSource } from '../packs/object-source.ts';
import { applyDelta, countInstructions, deltaSizes } from '../packs/pack-delta.ts';
import type { StoredObject } from '../packs/pack-file.ts';
import { type PackRow, packIndexFile } from '../packs/pack-index-file.ts';
import type { IndexedPack } from './index-pack.ts';
import { type Link, type PlainContent, plainObject } from './plain-objects.ts';

export interface SmallPack {
  /** The whole pack. */
  readonly bytes: Buffer;
  /** The objects of the committed layers (nearby-objects.ts). */
  readonly committed: ObjectSource;
  readonly hash: HashObject;
  readonly signal: AbortSignal;
}

/** Objects of a pack that is checked here. Internal: git checks larger packs in the same way. */
const OBJECTS_MAX = 512;
/**
 * The bytes of all objects and deltas together, and of the bases that are read for them. Internal: git checks larger
 * packs in the same way.
 */
const INFLATED_BYTES_MAX = 512 * 1024;
const BASE_BYTES_MAX = 256 * 1024;
const BASES_MAX = 64;
/** Committed blobs whose bytes are looked at. Internal: git checks larger packs in the same way. */
const CONTENTS_MAX = 32;
/**
 * The instructions of all deltas together: one may have hundreds of thousands, of a byte each. Internal: git checks
 * larger packs in the same way.
 */
const INSTRUCTIONS_MAX = 20_000;
/**
 * The bytes of one tree, which is checked in one go, some 1,000 entries; and of all together. Internal: git checks
 * larger packs in the same way.
 */
const TREE_BYTES_MAX = 32 * 1024;
const TREES_BYTES_MAX = 256 * 1024;
/** Larger objects are deflated off the event loop. Internal: both ways give the same bytes. */
const DEFLATE_SYNC_BYTES_MAX = 64 * 1024;
/** How long a check has the event loop at a time. */
const TURN_MS = 2;
/** Committed objects whose existence and type are looked up. Internal: git checks larger packs in the same way. */
const LOOKUPS_MAX = 512;

/** `PACK`. */
const SIGNATURE = 0x5041434b;
const HEADER_BYTES = 12;
const VERSION = 2;

/** Pack and index, in memory. Null when git has to decide. Rejects with the signal's reason when it is aborted. */
export async function indexSmallPack(small: SmallPack): Promise<IndexedPack | null> {
  const checked = await checkedFiles(small);
  small.signal.throwIfAborted();
  if (checked === null) return null;
  const { name, ...held } = checked.files;
  return { pack: name, sent: checked.sent, unreferenced: checked.unreferenced, held };
}

interface Checking extends Pick<SmallPack, 'committed' | 'hash'> {
  readonly turns: Turns;
}

interface Checked {
  readonly files: PackFiles;
  readonly sent: readonly ObjectInfo[];
  readonly unreferenced: readonly ObjectId[];
}

/** Null when git has to decide. */
async function checkedFiles(small: SmallPack): Promise<Checked | null> {
  const checking: Checking = { ...small, turns: createTurns(TURN_MS, small.signal) };
  try {
    const entries = await entriesOf(small.bytes, checking);
    if (entries === null) return null;
    const resolved = await resolve(entries, checking);
    if (resolved === null) return null;
    const referenced = await plainlyReferenced(resolved, checking);
    if (referenced === null) return null;
    const unreferenced = resolved.objects.flatMap(({ id }) => (referenced.has(id) ? [] : [id]));
    const sent = resolved.objects.map(({ id, type, bytes }) => ({ id, type, sizeBytes: bytes.length }));
    return { files: await filesOf(small.bytes, resolved, checking), sent, unreferenced };
  } catch {
    // A broken delta, a base that cannot be read or takes too long, or a collision attack: git says which.
    return null;
  }
}

interface Place {
  readonly offset: number;
  readonly end: number;
  /** The object, or the delta. */
  readonly data: Buffer;
}

interface WholeEntry extends Place {
  readonly type: ObjectType;
}

interface DeltaEntry extends Place {
  readonly type: null;
  /** Its base's offset in the pack, or its id. */
  readonly base: number | ObjectId;
}

type Entry = WholeEntry | DeltaEntry;

/** The entries of a pack that is whole, or null. */
async function entriesOf(pack: Buffer, { turns }: Checking): Promise<readonly Entry[] | null> {
  const count = pack.readUInt32BE(8);
  const end = pack.length - PACK_CHECKSUM_BYTES;
  if (
    pack.readUInt32BE(0) !== SIGNATURE ||
    pack.readUInt32BE(4) !== VERSION ||
    count > OBJECTS_MAX ||
    end < HEADER_BYTES
  )
    return null;
  const checksum = createHash('sha1').update(pack.subarray(0, end)).digest();
  if (!checksum.equals(pack.subarray(end))) return null;
  const entries: Entry[] = [];
  let inflated = 0;
  for (let at = HEADER_BYTES; entries.length < count; ) {
    if (turns.isOver()) await turns.next();
    const entry = entryAt(pack, at, end, INFLATED_BYTES_MAX - inflated);
    if (entry === null) return null;
    inflated += entry.data.length;
    at = entry.end;
    entries.push(entry);
  }
  return (entries.at(-1)?.end ?? HEADER_BYTES) === end ? entries : null;
}

/** Null if the entry is broken, or larger than `bytesMax`. */
function entryAt(pack: Buffer, offset: number, packEnd: number, bytesMax: number): Entry | null {
  const header = entryHeader(pack.subarray(offset, packEnd));
  if (header === null || header.sizeBytes > bytesMax) return null;
  const start = offset + header.length;
  const data = inflated(pack.subarray(start, packEnd), header.sizeBytes);
  if (data === null) return null;
  const place = { offset, end: start + data.consumed, data: data.bytes };
  if (header.type !== null) return { ...place, type: header.type };
  const { base } = header;
  return { ...place, type: null, base: typeof base === 'number' ? offset - base : objectId(base.toString('hex')) };
}

/** Inflates the stream that the bytes begin with, which holds exactly this many; null if it does not. */
function inflated(input: Buffer, size: number): { readonly bytes: Buffer; readonly consumed: number } | null {
  try {
    // With `info`, zlib says how many bytes of its input the stream took.
    const options = { info: true, maxOutputLength: size + 1, chunkSize: Math.max(64, size + 1) };
    const answer: unknown = inflateSync(input, options);
    const { buffer, engine } = answer as { readonly buffer?: unknown; readonly engine?: { bytesWritten?: unknown } };
    const consumed = engine?.bytesWritten;
    if (!Buffer.isBuffer(buffer) || typeof consumed !== 'number') throw new TypeError('zlib says nothing of its input');
    return buffer.length === size ? { bytes: buffer, consumed } : null;
  } catch {
    // Broken or larger: git says which.
    return null;
  }
}

interface PackObject extends StoredObject {
  readonly id: ObjectId;
  readonly entry: Entry;
}

interface Resolved {
  /** In the order of the pack. */
  readonly objects: readonly PackObject[];
  readonly byId: ReadonlyMap<ObjectId, PackObject>;
  /** Committed objects that deltas are made from, and that the pack does not hold. */
  readonly bases: ReadonlyMap<ObjectId, StoredObject>;
}

async function resolve(entries: readonly Entry[], checking: Checking): Promise<Resolved | null> {
  const { hash, turns } = checking;
  const byId = new Map<ObjectId, PackObject>();
  const byOffset = new Map<number, PackObject>();
  const bases = new Map<ObjectId, StoredObject>();
  let madeBytes = 0;
  let instructions = 0;
  let isSound = true;
  const add = (entry: Entry, type: ObjectType, bytes: Buffer) => {
    const object = { id: hash(type, bytes), entry, type, bytes };
    isSound &&= !byId.has(object.id);
    byId.set(object.id, object);
    byOffset.set(entry.offset, object);
  };
  const baseOf = ({ base }: DeltaEntry) =>
    typeof base === 'number' ? byOffset.get(base) : (byId.get(base) ?? bases.get(base));
  for (const entry of entries) {
    if (turns.isOver()) await turns.next();
    if (entry.type !== null) add(entry, entry.type, entry.data);
  }
  let deltas = entries.filter((entry) => entry.type === null);
  while (deltas.length > 0 && isSound) {
    const later: DeltaEntry[] = [];
    for (const entry of deltas) {
      if (turns.isOver()) await turns.next();
      const base = baseOf(entry);
      if (base === undefined) {
        later.push(entry);
        continue;
      }
      madeBytes += deltaSizes(entry.data).resultBytes;
      instructions += countInstructions(entry.data, INSTRUCTIONS_MAX);
      if (madeBytes > INFLATED_BYTES_MAX || instructions > INSTRUCTIONS_MAX) return null;
      add(entry, base.type, applyDelta(base.bytes, entry.data));
    }
    // Only what the pack itself does not make is a base of the committed layers.
    if (later.length === deltas.length && !(await addBases(later, bases, checking))) return null;
    deltas = later;
  }
  if (!isSound) return null;
  return { objects: [...byOffset.values()].toSorted((a, b) => a.entry.offset - b.entry.offset), byId, bases };
}

/**
 * Reads the committed bases that are still missing; false if there are none, if they are too many or too large, or if
 * one has rotted on the disk: git completes no pack with such a base.
 */
async function addBases(
  deltas: readonly DeltaEntry[],
  bases: Map<ObjectId, StoredObject>,
  { committed, hash, turns }: Checking,
): Promise<boolean> {
  let bytes = [...bases.values()].reduce((sum, base) => sum + base.bytes.length, 0);
  const before = bases.size;
  for (const { base } of deltas) {
    if (typeof base === 'number' || bases.has(base)) continue;
    if (turns.isOver()) await turns.next();
    const info = await committed.info(base);
    if (info === null) continue;
    bytes += info.sizeBytes;
    if (bytes > BASE_BYTES_MAX || bases.size === BASES_MAX) return false;
    const object = await committed.read(base);
    if (object === null || hash(object.type, object.bytes) !== base) return false;
    bases.set(base, object);
  }
  return bases.size > before;
}

/**
 * The ids that the objects refer to, if every object is new and plain, and everything that it refers to exists with the
 * right type; else null.
 */
async function plainlyReferenced(
  { objects, byId, bases }: Resolved,
  { committed, turns }: Checking,
): Promise<ReadonlySet<ObjectId> | null> {
  const types = await typesNamedBy(bases, turns);
  for (const { id, type } of objects) types.set(id, type);
  const links: Link[] = [];
  const contents: PlainContent[] = [];
  let treeBytes = 0;
  for (const { id, type, bytes } of objects) {
    if (type === 'tree') treeBytes += bytes.length;
    if (type === 'tree' && (bytes.length > TREE_BYTES_MAX || treeBytes > TREES_BYTES_MAX)) return null;
    if (turns.isOver()) await turns.next();
    // git compares a known object with what it knows, and takes none that the pack is completed with as well.
    if (await committed.has(id)) return null;
    const plain = plainObject(type, bytes);
    if (plain === null) return null;
    links.push(...plain.links);
    contents.push(...plain.contents);
  }
  const referenced = new Set(links.map(({ id }) => id));
  const unknown = [...referenced].filter((id) => !types.has(id));
  if (unknown.length > LOOKUPS_MAX) return null;
  const found = await readInTurn(unknown, (id) => committed.type(id), turns);
  for (const [index, id] of unknown.entries()) {
    const type = found[index] ?? null;
    if (type !== null) types.set(id, type);
  }
  if (links.some(({ id, type }) => types.get(id) !== type)) return null;
  return (await havePlainContents(contents, byId, { committed, turns })) ? referenced : null;
}

/**
 * The types of what the committed trees among the bases name: the committed layers are closed under references
 * (docs/architecture.md), so these objects exist. A new tree mostly is a delta of the last one, and names little else.
 */
async function typesNamedBy(bases: Resolved['bases'], turns: Turns): Promise<Map<ObjectId, ObjectType>> {
  const types = new Map<ObjectId, ObjectType>();
  for (const { type, bytes } of bases.values()) {
    if (type !== 'tree' || bytes.length > TREE_BYTES_MAX) continue;
    if (turns.isOver()) await turns.next();
    for (const link of plainObject(type, bytes)?.links ?? []) types.set(link.id, link.type);
  }
  return types;
}

async function havePlainContents(
  contents: readonly PlainContent[],
  byId: Resolved['byId'],
  { committed, turns }: Pick<Checking, 'committed' | 'turns'>,
): Promise<boolean> {
  // Many entries may name the same blob.
  const rules = new Map<ObjectId, Set<PlainContent['isPlain']>>();
  for (const { id, isPlain } of contents) rules.set(id, (rules.get(id) ?? new Set()).add(isPlain));
  const known = [...rules.keys()].filter((id) => !byId.has(id));
  if (known.length > CONTENTS_MAX) return false;
  const infos = await readInTurn(known, (id) => committed.info(id), turns);
  if (infos.reduce((sum, info) => sum + (info?.sizeBytes ?? 0), 0) > BASE_BYTES_MAX) return false;
  for (const [id, all] of rules) {
    if (turns.isOver()) await turns.next();
    const object = byId.get(id) ?? (await committed.read(id));
    if (object === null || [...all].some((isPlain) => !isPlain(object.bytes))) return false;
  }
  return true;
}

interface PackFiles extends PackBytes {
  /** The pack's checksum, hex. */
  readonly name: string;
}

const deflateLater = promisify<Buffer, Buffer>(deflate);

/**
 * The pack with the bases that it lacks behind it, as index-pack --fix-thin completes it, and its index. Git makes the
 * reverse index of so few objects faster than it opens one.
 */
async function filesOf(sent: Buffer, { objects, bases }: Resolved, { turns }: Checking): Promise<PackFiles> {
  const rows: PackRow[] = objects.map(({ id, entry: { offset, end } }) => ({
    id: Buffer.from(id, 'hex'),
    offset,
    crc32: crc32(sent.subarray(offset, end)),
  }));
  if (bases.size === 0) {
    const checksum = sent.subarray(sent.length - PACK_CHECKSUM_BYTES);
    return { name: checksum.toString('hex'), pack: sent, idx: packIndexFile(rows, checksum) };
  }
  const start = Buffer.from(sent.subarray(0, sent.length - PACK_CHECKSUM_BYTES));
  start.writeUInt32BE(objects.length + bases.size, 8);
  const parts = [start];
  let offset = start.length;
  for (const [id, { type, bytes }] of bases) {
    if (turns.isOver()) await turns.next();
    const deflated = bytes.length > DEFLATE_SYNC_BYTES_MAX ? await deflateLater(bytes) : deflateSync(bytes);
    const stored = Buffer.concat([wholeHeader(type, bytes.length), deflated]);
    rows.push({ id: Buffer.from(id, 'hex'), offset, crc32: crc32(stored) });
    parts.push(stored);
    offset += stored.length;
  }
  const body = Buffer.concat(parts);
  const checksum = createHash('sha1').update(body).digest();
  return { name: checksum.toString('hex'), pack: Buffer.concat([body, checksum]), idx: packIndexFile(rows, checksum) };
}
