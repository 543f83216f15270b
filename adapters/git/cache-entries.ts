/**
 * Which repositories are on this node's disk, who holds them, and which go when there are too many.
 *
 * Must stay true: a folder that somebody holds a lease on stays whole; one that is let go is handed out no more and
 * leaves the disk with its last lease.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LayerId, RepositoryId } from '../../core/kernel/ids.ts';
import type { CommittedObjects } from '../../core/ports/object-database.ts';
import {
  type CacheFolder,
  type CachePaths,
  findCacheFolders,
  isMissing,
  isThere,
  isWhole,
  makeCacheFolder,
  type PresentLayer,
} from './cache/cache-folder.ts';
import type { GitLog } from './process/log.ts';
import type { OpenPack } from './packs/object-source.ts';

/** Open indexes take from 1 to 100 KB of memory each; those of the repositories used last stay. */
const OPEN_PACKS_MAX = 10_000;

export interface CacheEntry {
  readonly key: string;
  readonly folder: CacheFolder;
  /** By position in the repository's sequence of layers, as far as they were all seen here. */
  readonly order: { readonly id: LayerId; readonly pack: OpenPack }[];
  /** The packs of the first `count` of them, each once: mostly what is asked for next as well. */
  leased: { readonly count: number; readonly packs: readonly OpenPack[] } | null;
  readonly packs: Map<string, Promise<OpenPack>>;
  readonly arriving: Map<LayerId, Promise<PresentLayer>>;
  /** Here, and not in the manifest yet. */
  readonly unnoted: PresentLayer[];
  /** Folders found at start are checked when first used. */
  checked: boolean;
  merging: boolean;
  leases: number;
  bytes: number;
  retired: boolean;
}

export interface CacheEntries {
  /** The entry of this repository at this epoch, with a lease on it; a new one is empty. */
  hold(objects: CommittedObjects): Promise<CacheEntry>;
  /** The same without making one: null when it is not on the disk. */
  holdExisting(repository: RepositoryId, shrinkEpoch: number): CacheEntry | null;
  release(entry: CacheEntry): void;
  grow(entry: CacheEntry, bytes: number): void;
  keepOpen(entry: CacheEntry, pack: string, opened: Promise<OpenPack>): void;
  /** Lets go of unheld entries, those used longest ago first, until all together are this small. */
  evict(bytesMax: number): void;
  drop(repository: RepositoryId): void;
  /** Hands out another folder with the same objects from now on. */
  replace(entry: CacheEntry, folder: CacheFolder): void;
  remove(folder: CacheFolder): void;
  /** Runs behind the requests' backs, one after the other. */
  later(work: () => Promise<void>): void;
  settled(): Promise<void>;
  sizeBytes(): number;
}

export async function openCacheEntries(paths: CachePaths, cacheBytesMax: number, log: GitLog): Promise<CacheEntries> {
  // In the order of their last use, the oldest first; those being made are in `making` alone.
  const known = new Map<string, CacheEntry>();
  const making = new Map<string, Promise<CacheEntry>>();
  let totalBytes = 0;
  let openPacks = 0;
  let background: Promise<void> = Promise.resolve();

  const later = (work: () => Promise<void>) => {
    background = background.then(work).catch((error: unknown) => log.error({ error }, 'Work on the cache failed'));
  };
  const remove = (folder: CacheFolder) => {
    const trash = join(paths.trash, randomUUID());
    later(async () => {
      try {
        await mkdir(paths.trash, { recursive: true });
        await rename(folder.path, trash);
        await rm(trash, { recursive: true, force: true });
      } catch (error) {
        // Somebody was faster; anything else is swept at the next start.
        if (!isMissing(error)) log.warn({ folder: folder.path, error }, 'A cached repository stays on the disk');
      }
    });
  };
  const retire = (entry: CacheEntry) => {
    if (entry.retired) return;
    entry.retired = true;
    known.delete(entry.key);
    totalBytes -= entry.bytes;
    openPacks -= entry.packs.size;
    if (entry.leases === 0) remove(entry.folder);
  };
  const evict = (bytesMax: number) => {
    for (const entry of known.values()) {
      if (totalBytes <= bytesMax) return;
      if (entry.leases === 0) retire(entry);
    }
  };
  const forgetPacks = () => {
    for (const entry of known.values()) {
      if (openPacks <= OPEN_PACKS_MAX) return;
      if (entry.leases > 0) continue;
      openPacks -= entry.packs.size;
      entry.packs.clear();
      entry.order.length = 0;
      entry.leased = null;
    }
  };
  const release = (entry: CacheEntry) => {
    entry.leases -= 1;
    if (entry.leases > 0) return;
    if (entry.retired) remove(entry.folder);
    evict(cacheBytesMax);
    forgetPacks();
  };
  const add = (folder: CacheFolder, checked: boolean): CacheEntry => {
    const entry = newEntry(folder, checked);
    known.set(entry.key, entry);
    totalBytes += entry.bytes;
    return entry;
  };
  const take = (entry: CacheEntry): CacheEntry => {
    entry.leases += 1;
    known.delete(entry.key);
    known.set(entry.key, entry);
    return entry;
  };
  const make = async (key: string, { repository, shrinkEpoch }: CommittedObjects): Promise<CacheEntry> => {
    try {
      const folder = await makeCacheFolder(paths.repositories, repository, shrinkEpoch);
      for (const other of [...known.values()]) {
        // What this repository was before layers were removed: of use only to whoever still reads it.
        if (other.folder.repository === repository && other.folder.shrinkEpoch < shrinkEpoch) retire(other);
      }
      return add(folder, true);
    } finally {
      making.delete(key);
    }
  };
  const isUsable = async (entry: CacheEntry): Promise<boolean> => {
    const usable = entry.checked ? isThere(entry.folder) : await isWhole(entry.folder);
    entry.checked = true;
    return usable;
  };

  for (const folder of await findCacheFolders(paths.repositories)) add(folder, false);

  return {
    hold: async (objects) => {
      const key = entryKey(objects.repository, objects.shrinkEpoch);
      for (;;) {
        const found = known.get(key);
        if (found === undefined) {
          const made = making.get(key) ?? make(key, objects);
          making.set(key, made);
          await made;
          continue;
        }
        // Taken in the turn in which it was found, so that no eviction comes between.
        const entry = take(found);
        try {
          if (await isUsable(entry)) return entry;
          log.warn({ repository: objects.repository }, 'A cached repository was changed from outside: refilling it');
          retire(entry);
        } catch (error) {
          release(entry);
          throw error;
        }
        release(entry);
      }
    },
    holdExisting: (repository, shrinkEpoch) => {
      const found = known.get(entryKey(repository, shrinkEpoch));
      return found === undefined ? null : take(found);
    },
    release,
    grow: (entry, bytes) => {
      entry.bytes += bytes;
      if (!entry.retired) totalBytes += bytes;
      evict(cacheBytesMax);
    },
    keepOpen: (entry, pack, opened) => {
      entry.packs.set(pack, opened);
      if (!entry.retired) openPacks += 1;
      opened.catch(() => {
        if (entry.packs.get(pack) === opened && entry.packs.delete(pack) && !entry.retired) openPacks -= 1;
      });
    },
    evict,
    drop: (repository) => {
      for (const entry of [...known.values()]) if (entry.folder.repository === repository) retire(entry);
    },
    replace: (entry, folder) => {
      retire(entry);
      add(folder, true);
    },
    remove,
    later,
    settled: () => background,
    sizeBytes: () => totalBytes,
  };
}

function newEntry(folder: CacheFolder, checked: boolean): CacheEntry {
  const sizes = new Map<string, number>();
  for (const { pack, packBytes, idxBytes } of folder.present.values()) sizes.set(pack, packBytes + idxBytes);
  let bytes = 0;
  for (const size of sizes.values()) bytes += size;
  const key = entryKey(folder.repository, folder.shrinkEpoch);
  const memory = { order: [], packs: new Map(), arriving: new Map(), unnoted: [] };
  return { key, folder, ...memory, leased: null, checked, merging: false, leases: 0, bytes, retired: false };
}

function entryKey(repository: RepositoryId, shrinkEpoch: number): string {
  return `${repository}/${shrinkEpoch}`;
}
