/**
 * The repositories on this node's disk: counts the leases on each, and evicts some when they take too much space.
 *
 * Must stay true: a folder with a lease on it stays whole; a retired folder is never handed out again, and is removed
 * from the disk when its last lease is released.
 */
import type { LayerId, RepositoryId } from '../../../core/kernel/ids.ts';
import type { CommittedObjects } from '../../../core/ports/object-database.ts';
import {
  type CacheFolder,
  type CachePaths,
  findCacheFolders,
  isThere,
  isWhole,
  makeCacheFolder,
  type PresentLayer,
} from './cache-folder.ts';
import { DiskWork } from './disk-work.ts';
import type { GitLog } from '../process/log.ts';
import type { OpenPack } from '../packs/object-source.ts';

/** An open index takes 1 to 100 KB of memory. Beyond this many, the least recently used repositories lose theirs. */
const OPEN_PACKS_MAX = 10_000;

export interface CacheEntry {
  readonly key: string;
  readonly folder: CacheFolder;
  /** The start of the repository's sequence of layers, in order, as far as all their packs are open here. */
  readonly order: { readonly id: LayerId; readonly pack: OpenPack }[];
  /** The packs of the first `count` layers, each once: the next lease mostly needs the same. */
  leased: { readonly count: number; readonly packs: readonly OpenPack[] } | null;
  readonly packs: Map<string, Promise<OpenPack>>;
  readonly arriving: Map<LayerId, Promise<PresentLayer>>;
  /** Layers in the folder that the manifest does not name yet. */
  readonly unrecorded: PresentLayer[];
  /** False for a folder found at start: its files are checked when it is first used. */
  checked: boolean;
  merging: boolean;
  leases: number;
  bytes: number;
  retired: boolean;
}

/** Finds the folders that an earlier process left. Each is checked when it is first used. */
export async function openCacheEntries(paths: CachePaths, cacheBytesMax: number, log: GitLog): Promise<CacheEntries> {
  const entries = new CacheEntries(paths, cacheBytesMax, log);
  for (const folder of await findCacheFolders(paths.repositories)) entries.add(folder, false);
  return entries;
}

export class CacheEntries {
  readonly #paths: CachePaths;
  readonly #cacheBytesMax: number;
  readonly #log: GitLog;
  readonly #disk: DiskWork;
  /** In the order of their last use, oldest first. Entries that are being made are in `#making` only. */
  readonly #known = new Map<string, CacheEntry>();
  readonly #making = new Map<string, Promise<CacheEntry>>();
  #totalBytes = 0;
  #openPacks = 0;

  constructor(paths: CachePaths, cacheBytesMax: number, log: GitLog) {
    this.#paths = paths;
    this.#cacheBytesMax = cacheBytesMax;
    this.#log = log;
    this.#disk = new DiskWork(paths.trash, log);
  }

  /** Bytes of packs and indexes of all entries that are not retired. */
  get sizeBytes(): number {
    return this.#totalBytes;
  }

  /** Background work on the disk. */
  get disk(): DiskWork {
    return this.#disk;
  }

  add(folder: CacheFolder, checked: boolean): CacheEntry {
    const entry = newEntry(folder, checked);
    this.#known.set(entry.key, entry);
    this.#totalBytes += entry.bytes;
    return entry;
  }

  /** Resolves with the entry of this repository at this epoch, and a lease on it. A new entry is empty. */
  async acquire(objects: CommittedObjects): Promise<CacheEntry> {
    const key = entryKey(objects.repository, objects.shrinkEpoch);
    for (;;) {
      const found = this.#known.get(key);
      if (found === undefined) {
        const made = this.#making.get(key) ?? this.#make(key, objects);
        this.#making.set(key, made);
        await made;
        continue;
      }
      // Leased before the next await, so that it is not evicted in between.
      const entry = this.#take(found);
      try {
        if (await isUsable(entry)) return entry;
        this.#log.warn(
          { repository: objects.repository },
          'A cached repository was changed from outside: refilling it',
        );
        this.#retire(entry);
      } catch (error) {
        this.release(entry);
        throw error;
      }
      this.release(entry);
    }
  }

  /** As `acquire`, but never makes or checks a folder: null when the repository is not on the disk. */
  acquireExisting(repository: RepositoryId, shrinkEpoch: number): CacheEntry | null {
    const found = this.#known.get(entryKey(repository, shrinkEpoch));
    return found === undefined ? null : this.#take(found);
  }

  release(entry: CacheEntry): void {
    entry.leases -= 1;
    if (entry.leases > 0) return;
    if (entry.retired) this.#disk.remove(entry.folder);
    this.evict(this.#cacheBytesMax);
    this.#forgetPacks();
  }

  grow(entry: CacheEntry, bytes: number): void {
    entry.bytes += bytes;
    if (!entry.retired) this.#totalBytes += bytes;
    this.evict(this.#cacheBytesMax);
  }

  keepOpen(entry: CacheEntry, pack: string, opened: Promise<OpenPack>): void {
    entry.packs.set(pack, opened);
    if (!entry.retired) this.#openPacks += 1;
    opened.catch(() => {
      if (entry.packs.get(pack) === opened && entry.packs.delete(pack) && !entry.retired) this.#openPacks -= 1;
    });
  }

  /** Retires entries without a lease, least recently used first, until all together take at most this many bytes. */
  evict(bytesMax: number): void {
    for (const entry of this.#known.values()) {
      if (this.#totalBytes <= bytesMax) return;
      if (entry.leases === 0) this.#retire(entry);
    }
  }

  drop(repository: RepositoryId): void {
    for (const entry of this.#known.values()) if (entry.folder.repository === repository) this.#retire(entry);
  }

  /** From now on hands out this folder, which has the same objects, instead of the entry's. */
  replace(entry: CacheEntry, folder: CacheFolder): void {
    this.#retire(entry);
    this.add(folder, true);
  }

  #take(entry: CacheEntry): CacheEntry {
    entry.leases += 1;
    this.#known.delete(entry.key);
    this.#known.set(entry.key, entry);
    return entry;
  }

  async #make(key: string, { repository, shrinkEpoch }: CommittedObjects): Promise<CacheEntry> {
    try {
      const folder = await makeCacheFolder(this.#paths.repositories, repository, shrinkEpoch);
      for (const other of this.#known.values()) {
        // The repository before layers were removed: only requests that already read it still need it.
        if (other.folder.repository === repository && other.folder.shrinkEpoch < shrinkEpoch) this.#retire(other);
      }
      return this.add(folder, true);
    } finally {
      this.#making.delete(key);
    }
  }

  #retire(entry: CacheEntry): void {
    if (entry.retired) return;
    entry.retired = true;
    this.#known.delete(entry.key);
    this.#totalBytes -= entry.bytes;
    this.#openPacks -= entry.packs.size;
    if (entry.leases === 0) this.#disk.remove(entry.folder);
  }

  #forgetPacks(): void {
    for (const entry of this.#known.values()) {
      if (this.#openPacks <= OPEN_PACKS_MAX) return;
      if (entry.leases > 0) continue;
      this.#openPacks -= entry.packs.size;
      entry.packs.clear();
      entry.order.length = 0;
      entry.leased = null;
    }
  }
}

async function isUsable(entry: CacheEntry): Promise<boolean> {
  const usable = entry.checked ? isThere(entry.folder) : await isWhole(entry.folder);
  entry.checked = true;
  return usable;
}

function newEntry(folder: CacheFolder, checked: boolean): CacheEntry {
  const sizes = new Map<string, number>();
  for (const { pack, packBytes, idxBytes } of folder.present.values()) sizes.set(pack, packBytes + idxBytes);
  let bytes = 0;
  for (const size of sizes.values()) bytes += size;
  const key = entryKey(folder.repository, folder.shrinkEpoch);
  const memory = { order: [], packs: new Map(), arriving: new Map(), unrecorded: [] };
  return { key, folder, ...memory, leased: null, checked, merging: false, leases: 0, bytes, retired: false };
}

function entryKey(repository: RepositoryId, shrinkEpoch: number): string {
  return `${repository}/${shrinkEpoch}`;
}
