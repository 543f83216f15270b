/**
 * The objects of some packs, looked up and read in process.
 *
 * Must stay true: an object is there when one of these packs has it; no other pack of the folder counts.
 */
import type { ObjectId } from '../../../core/kernel/ids.ts';
import type { ObjectInfo, ObjectType } from '../../../core/ports/object-database.ts';
import type { FilePages } from './file-pages.ts';
import { type KeptObjects, openPackFile, type PackFile, type StoredObject } from './pack-file.ts';
import { openPackIndex, type PackIndex } from './pack-index.ts';

/** Built into git: there without being in any pack. */
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';

export interface OpenPack {
  readonly name: string;
  readonly index: PackIndex;
  readonly file: PackFile;
}

export interface PackMemory {
  readonly pages: FilePages;
  readonly kept: KeptObjects;
}

export async function openPack(memory: PackMemory, name: string, packPath: string, idxPath: string): Promise<OpenPack> {
  const { pages, kept } = memory;
  const [packFile, idxFile] = await Promise.all([pages.open(packPath), pages.open(idxPath)]);
  const index = await openPackIndex(pages, idxFile);
  return { name, index, file: openPackFile(pages, kept, packFile, index) };
}

/** As `openPack`, for a pack that git wrote a moment ago. */
export async function openFreshPack(
  memory: PackMemory,
  name: string,
  packPath: string,
  idxPath: string,
): Promise<OpenPack> {
  const { pages, kept } = memory;
  const index = await openPackIndex(pages, pages.openFresh(idxPath));
  return { name, index, file: openPackFile(pages, kept, pages.openFresh(packPath), index) };
}

/** Reads what is beyond the bounds of reading in process. Gets only ids that a pack has. */
export interface GitObjects {
  info(id: ObjectId): Promise<{ readonly type: ObjectType; readonly sizeBytes: number }>;
  read(id: ObjectId): Promise<StoredObject>;
}

export interface ObjectSource {
  info(id: ObjectId): Promise<ObjectInfo | null>;
  /** The object, or null where there is none of this id. Meant for commits, tags and trees. */
  read(id: ObjectId): Promise<StoredObject | null>;
  has(id: ObjectId): Promise<boolean>;
}

/** Trees of a few hundred thousand entries; the largest commits and tags are far smaller. */
const READ_BYTES_MAX = 16 * 1024 * 1024;

interface Place {
  readonly pack: OpenPack;
  readonly offset: number;
}

/** The packs are searched from the last to the first: what is asked for is mostly new. */
export function createObjectSource(packs: readonly OpenPack[], git: GitObjects): ObjectSource {
  let lastHit: OpenPack | null = null;
  const find = async (id: ObjectId): Promise<Place | null> => {
    const bytes = Buffer.from(id, 'hex');
    const last = lastHit;
    if (last !== null) {
      const offset = await findIn(last, bytes);
      if (offset !== null) return { pack: last, offset };
    }
    for (let index = packs.length - 1; index >= 0; index -= 1) {
      const pack = packs[index];
      if (pack === undefined || pack === last) continue;
      const found = pack.index.find(bytes);
      const offset = found instanceof Promise ? await found : found;
      if (offset === null) continue;
      lastHit = pack;
      return { pack, offset };
    }
    return null;
  };
  return {
    has: async (id) => id === EMPTY_TREE || (await find(id)) !== null,
    info: async (id) => {
      const place = await find(id);
      if (place === null) return id === EMPTY_TREE ? { id, type: 'tree', sizeBytes: 0 } : null;
      return { id, ...((await place.pack.file.info(place.offset)) ?? (await git.info(id))) };
    },
    read: async (id) => {
      const place = await find(id);
      if (place === null) return id === EMPTY_TREE ? { type: 'tree', bytes: Buffer.alloc(0) } : null;
      return (await place.pack.file.read(place.offset, READ_BYTES_MAX)) ?? git.read(id);
    },
  };
}

async function findIn(pack: OpenPack, id: Uint8Array): Promise<number | null> {
  return pack.index.find(id);
}
