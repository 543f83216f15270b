/**
 * Looks up and reads the objects of some packs in process.
 *
 * Invariants: an object exists if one of these packs has it; no other pack of the folder counts.
 */
import { objectBytesMax, sizeFault } from '../../../core/git/object-bounds.ts';
import type { ObjectInfo, ObjectType } from '../../../core/git/objects.ts';
import { EMPTY_TREE_ID, type ObjectId } from '../../../core/kernel/ids.ts';
import { type MaybePromise, whenReady } from '../../../core/kernel/maybe-promise.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import type { PackBytes } from './joined-pack.ts';
import {
  type BeforeLarge,
  openPackFile,
  type PackFile,
  type PackMemory,
  type SizeBounds,
  type StoredObject,
} from './pack-file.ts';
import { openPackIndex, type PackIndex } from './pack-index.ts';

export interface OpenPack {
  readonly name: string;
  readonly index: PackIndex;
  readonly file: PackFile;
}

export async function openPack(memory: PackMemory, name: string, packPath: string, idxPath: string): Promise<OpenPack> {
  const { pages } = memory;
  const [packFile, idxFile] = await Promise.all([pages.open(packPath), pages.open(idxPath)]);
  const index = await openPackIndex(pages, idxFile);
  return { name, index, file: openPackFile(memory, packFile, index) };
}

/** Opens like `openPack`, for a pack that was written a moment ago. */
export async function openFreshPack(
  memory: PackMemory,
  name: string,
  packPath: string,
  idxPath: string,
): Promise<OpenPack> {
  const { pages } = memory;
  const index = await openPackIndex(pages, pages.openFresh(idxPath));
  return { name, index, file: openPackFile(memory, pages.openFresh(packPath), index) };
}

/** Where a pack is read that may be in memory only: from its bytes until `held` returns null, then from its files. */
export interface PackPlace {
  readonly held: () => PackBytes | null;
  readonly packPath: string;
  readonly idxPath: string;
}

/** The files of a checked pack that is to be moved into a repository. */
export interface PackFiles {
  readonly packPath: string;
  readonly idxPath: string;
  /** Reverse index, where there is one; git works without it. */
  readonly revPath?: string;
  readonly packBytes: number;
  readonly idxBytes: number;
}

/** Opens like `openPack`, for a pack of these bytes that is not on the disk yet. */
export async function openHeldPack(
  memory: PackMemory,
  name: string,
  bytes: PackBytes,
  { held, packPath, idxPath }: PackPlace,
): Promise<OpenPack> {
  const { pages } = memory;
  const idxFile = pages.openHeld(idxPath, bytes.idx, () => held()?.idx ?? null);
  const packFile = pages.openHeld(packPath, bytes.pack, () => held()?.pack ?? null);
  const index = await openPackIndex(pages, idxFile);
  return { name, index, file: openPackFile(memory, packFile, index) };
}

/** From now on reads an open pack at another place, which has the same bytes. */
export function movePack({ file, index }: OpenPack, { held, packPath, idxPath }: PackPlace): void {
  file.file.path = packPath;
  file.file.held = () => held()?.pack ?? null;
  index.file.path = idxPath;
  index.file.held = () => held()?.idx ?? null;
}

/** Reads objects that are beyond the bounds of reading in process. Callers pass only ids that a pack has. */
export interface GitObjects {
  info(id: ObjectId): Promise<{ readonly type: ObjectType; readonly sizeBytes: number }>;
  read(id: ObjectId): Promise<StoredObject>;
}

export interface ObjectSource {
  info(id: ObjectId): Promise<ObjectInfo | null>;
  /** The object's type, or null when none has this id: costs a tenth of `info`. May throw what it could reject with. */
  type(id: ObjectId): MaybePromise<ObjectType | null>;
  /**
   * The object, or null when none has this id. Meant for commits, tags and trees. Throws `object-too-large` for one
   * that no push may bring, before it is inflated. For `beforeLarge` see pack-file.ts.
   */
  read(id: ObjectId, beforeLarge?: BeforeLarge): Promise<StoredObject | null>;
  has(id: ObjectId): Promise<boolean>;
}

/** Larger blobs are left to git. Internal: git gives the same bytes. */
const BLOB_BYTES_MAX = 16 * 1024 * 1024;

const BOUNDS: SizeBounds = {
  commit: objectBytesMax('commit'),
  tag: objectBytesMax('tag'),
  tree: objectBytesMax('tree'),
  blob: BLOB_BYTES_MAX,
};

interface Place {
  readonly pack: OpenPack;
  readonly offset: number;
}

/**
 * Searches the pack of the last hit, then the packs from the last to the first: most requested objects are new.
 * `fileOf` gives the file of a pack as this source may read it.
 */
export function createObjectSource(
  packs: readonly OpenPack[],
  git: GitObjects,
  fileOf: (pack: OpenPack) => Pick<PackFile, 'type' | 'info' | 'read'> = ({ file }) => file,
): ObjectSource {
  let lastHit: OpenPack | null = null;
  const find = (id: ObjectId): MaybePromise<Place | null> => {
    const bytes = Buffer.from(id, 'hex');
    const last = lastHit;
    if (last === null) return findFrom(bytes, packs.length - 1, null);
    return whenReady(last.index.find(bytes), (offset) =>
      offset === null ? findFrom(bytes, packs.length - 1, last) : { pack: last, offset },
    );
  };
  const findFrom = (id: Buffer, start: number, searched: OpenPack | null): MaybePromise<Place | null> => {
    for (let at = start; at >= 0; at -= 1) {
      const pack = packs[at];
      if (pack === undefined || pack === searched) continue;
      const found = pack.index.find(id);
      if (found instanceof Promise) {
        return found.then((offset) => (offset === null ? findFrom(id, at - 1, searched) : hit(pack, offset)));
      }
      if (found !== null) return hit(pack, found);
    }
    return null;
  };
  const hit = (pack: OpenPack, offset: number): Place => {
    lastHit = pack;
    return { pack, offset };
  };
  const infoOf = async (id: ObjectId, { pack, offset }: Place): Promise<ObjectInfo> => {
    const { type, sizeBytes } = (await fileOf(pack).info(offset)) ?? (await git.info(id));
    return { id, type, sizeBytes };
  };
  const typeByGit = async (id: ObjectId): Promise<ObjectType> => (await git.info(id)).type;
  return {
    has: async (id) => id === EMPTY_TREE_ID || (await find(id)) !== null,
    type: (id) =>
      whenReady(find(id), (place) => {
        if (place === null) return id === EMPTY_TREE_ID ? 'tree' : null;
        return whenReady(fileOf(place.pack).type(place.offset), (found) => found?.type ?? typeByGit(id));
      }),
    info: async (id) => {
      const place = await find(id);
      if (place === null) return id === EMPTY_TREE_ID ? { id, type: 'tree', sizeBytes: 0 } : null;
      return infoOf(id, place);
    },
    read: async (id, beforeLarge) => {
      const place = await find(id);
      if (place === null) return id === EMPTY_TREE_ID ? { type: 'tree', bytes: Buffer.alloc(0) } : null;
      const object = await fileOf(place.pack).read(place.offset, BOUNDS, beforeLarge);
      if (object !== null) return object;
      const fault = sizeFault(await infoOf(id, place));
      if (fault !== null) throw new ObjectDatabaseError('object-too-large', fault);
      await beforeLarge?.();
      return git.read(id);
    },
  };
}
