/**
 * The repositories on this node's disk: filled from layers when asked for, kept while leased, evicted by size.
 *
 * Must stay true: a folder that somebody holds a lease on stays whole; each layer is fetched once at a time,
 * whoever waits for it; every folder can be made again from the layer store.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LayerId, RepositoryId } from '../../core/kernel/ids.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import { type CommittedObjects, type Layer, ObjectDatabaseError } from '../../core/ports/object-database.ts';
import {
  addPack,
  type CacheFolder,
  findCacheFolders,
  isMissing,
  isThere,
  isWhole,
  makeCacheFolder,
  noteLayers,
  type PackFiles,
  type PresentLayer,
  packPath,
  startCache,
} from './cache-folder.ts';
import { createFairSlots } from './fair-slots.ts';
import { createIncomingFolders, type IncomingFolders } from './incoming-folders.ts';
import { fetchLayer, isDiskFull } from './layer-fetch.ts';
import type { GitLog } from './log.ts';
import { type OpenPack, openPack, type PackMemory } from './object-source.ts';

/** A hold on a repository's folder; whoever has one gives it back once. */
export interface CacheLease {
  readonly folder: CacheFolder;
  /** Packs of exactly the layers asked for, in their order; the last is the newest. */
  readonly packs: readonly OpenPack[];
  release(): void;
}

export interface LayerCache {
  /** Waits until every layer is here and checked. Rejects with an ObjectDatabaseError. */
  acquire(objects: CommittedObjects): Promise<CacheLease>;
  /**
   * Adds a layer whose pack is on this disk already; with it, `acquire` need not fetch it. The answer is whether the
   * files were moved: they are not needed when somebody fetched the layer first.
   */
  install(lease: CacheLease, layer: Layer, files: PackFiles, opened: OpenPack): Promise<boolean>;
  drop(repository: RepositoryId): void;
  /** Bytes of packs and indexes in all folders. */
  sizeBytes(): number;
  /** For files on their way in, on the same file system. */
  readonly incoming: IncomingFolders;
  /** Resolves when what was begun on the disk is done. */
  settled(): Promise<void>;
}

export interface LayerCacheOptions {
  readonly directory: string;
  readonly layers: LayerStore;
  readonly cacheBytesMax: number;
  readonly memory: PackMemory;
  readonly log: GitLog;
}

/** Layers fetched at once, and of them for one repository. */
const FETCHES_MAX = 16;
const FETCHES_PER_REPOSITORY_MAX = 6;
/** Open indexes take from 1 to 100 KB of memory each; those of the repositories used last stay. */
const OPEN_PACKS_MAX = 10_000;

interface Entry {
  readonly key: string;
  readonly folder: CacheFolder;
  /** By position in the repository's sequence of layers, as far as they were all seen here. */
  readonly order: { readonly id: LayerId; readonly pack: OpenPack }[];
  readonly packs: Map<string, Promise<OpenPack>>;
  readonly arriving: Map<LayerId, Promise<PresentLayer>>;
  /** Here, and not in the manifest yet. */
  readonly unnoted: PresentLayer[];
  /** Folders found at start are checked when first used. */
  checked: boolean;
  leases: number;
  bytes: number;
  /** No longer handed out; goes with its last lease. */
  retired: boolean;
}

export async function createLayerCache(options: LayerCacheOptions): Promise<LayerCache> {
  const paths = {
    repositories: join(options.directory, 'repositories'),
    incoming: join(options.directory, 'incoming'),
    trash: join(options.directory, 'trash'),
  };
  await startCache(options.directory, paths);
  // In the order of their last use, the oldest first.
  const entries = new Map<string, Promise<Entry>>();
  const known = new Map<string, Entry>();
  const slots = createFairSlots({ slots: FETCHES_MAX, slotsPerKey: FETCHES_PER_REPOSITORY_MAX });
  const incoming = createIncomingFolders(paths.incoming);
  let totalBytes = 0;
  let openPacks = 0;
  let background: Promise<void> = Promise.resolve();

  for (const folder of await findCacheFolders(paths.repositories)) {
    const entry = newEntry(folder, false);
    entries.set(entry.key, Promise.resolve(entry));
    known.set(entry.key, entry);
    totalBytes += entry.bytes;
  }

  const removeFolder = (folder: CacheFolder) => {
    const trash = join(paths.trash, randomUUID());
    background = background.then(async () => {
      try {
        await mkdir(paths.trash, { recursive: true });
        await rename(folder.path, trash);
        await rm(trash, { recursive: true, force: true });
      } catch (error) {
        // What stays is swept at the next start.
        if (!isMissing(error))
          options.log.warn({ folder: folder.path, error }, 'A cached repository stays on the disk');
      }
    });
  };
  const retire = (entry: Entry) => {
    if (entry.retired) return;
    entry.retired = true;
    if (known.get(entry.key) === entry) {
      known.delete(entry.key);
      entries.delete(entry.key);
    }
    totalBytes -= entry.bytes;
    openPacks -= entry.packs.size;
    if (entry.leases === 0) removeFolder(entry.folder);
  };
  const evict = (bytesMax: number) => {
    for (const entry of known.values()) {
      if (totalBytes <= bytesMax) return;
      if (entry.leases === 0) retire(entry);
    }
  };
  const release = (entry: Entry) => {
    entry.leases -= 1;
    if (entry.leases > 0) return;
    if (entry.retired) removeFolder(entry.folder);
    else evict(options.cacheBytesMax);
    forgetPacks();
  };
  const forgetPacks = () => {
    if (openPacks <= OPEN_PACKS_MAX) return;
    for (const entry of known.values()) {
      if (openPacks <= OPEN_PACKS_MAX) return;
      if (entry.leases > 0) continue;
      openPacks -= entry.packs.size;
      entry.packs.clear();
      entry.order.length = 0;
    }
  };

  /** The entry with a lease on it: taken in the same turn in which it is found, so that no eviction comes between. */
  const hold = async (objects: CommittedObjects): Promise<Entry> => {
    const key = entryKey(objects.repository, objects.shrinkEpoch);
    for (;;) {
      const found = entries.get(key) ?? make(key, objects);
      const entry = await found;
      if (entry.retired) continue;
      entry.leases += 1;
      entries.delete(key);
      entries.set(key, found);
      known.delete(key);
      known.set(key, entry);
      try {
        const usable = entry.checked ? isThere(entry.folder) : await isWhole(entry.folder);
        entry.checked = true;
        if (usable) return entry;
      } catch (error) {
        release(entry);
        throw error;
      }
      options.log.warn(
        { repository: objects.repository },
        'A cached repository was changed from outside: refilling it',
      );
      retire(entry);
      release(entry);
    }
  };
  const make = (key: string, objects: CommittedObjects): Promise<Entry> => {
    const made = makeCacheFolder(paths.repositories, objects.repository, objects.shrinkEpoch).then((folder) => {
      const entry = newEntry(folder, true);
      for (const other of [...known.values()]) {
        // What this repository was before layers were removed: of use only to whoever still reads it.
        const older = other.folder.repository === objects.repository && other.folder.shrinkEpoch < objects.shrinkEpoch;
        if (older) retire(other);
      }
      known.set(key, entry);
      return entry;
    });
    made.catch(() => entries.delete(key));
    entries.set(key, made);
    return made;
  };

  const arrive = (entry: Entry, layer: Layer, bring: () => Promise<PresentLayer>): Promise<PresentLayer> => {
    const present = entry.folder.present.get(layer.id);
    if (present !== undefined && present.sha256 === layer.sha256) return Promise.resolve(present);
    const running = entry.arriving.get(layer.id);
    if (running !== undefined) return running;
    const arriving = bring()
      .then((added) => {
        entry.bytes += added.packBytes + added.idxBytes;
        if (!entry.retired) totalBytes += added.packBytes + added.idxBytes;
        evict(options.cacheBytesMax);
        note(entry, added);
        return added;
      })
      .finally(() => entry.arriving.delete(layer.id));
    entry.arriving.set(layer.id, arriving);
    return arriving;
  };
  /** Behind the request's back, and several at once when they come fast. */
  const note = (entry: Entry, added: PresentLayer) => {
    entry.unnoted.push(added);
    if (entry.unnoted.length > 1) return;
    background = background.then(async () => {
      try {
        if (!entry.retired) await noteLayers(entry.folder, entry.unnoted.splice(0));
      } catch (error) {
        // Only a restart misses it: then the layer is fetched again.
        if (!isMissing(error)) options.log.warn({ folder: entry.folder.path, error }, 'A manifest was not written');
      }
    });
  };
  const fetchInto = async (entry: Entry, layer: Layer): Promise<PresentLayer> => {
    const done = await slots.acquire(entry.key);
    try {
      const folder = await incoming.take();
      try {
        return await addPack(entry.folder, layer, await fetchLayer(options.layers, layer, folder));
      } finally {
        await incoming.remove(folder);
      }
    } finally {
      done();
    }
  };
  const fetchWithRoom = async (entry: Entry, layer: Layer): Promise<PresentLayer> => {
    try {
      return await fetchInto(entry, layer);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      // Other repositories can be had again; the one that is asked for now is worth their room.
      evict(Math.max(0, totalBytes / 2 - layer.sizeBytes));
      await background;
      return fetchInto(entry, layer);
    }
  };

  const open = (entry: Entry, { pack }: PresentLayer): Promise<OpenPack> => {
    const already = entry.packs.get(pack);
    if (already !== undefined) return already;
    const paths = [packPath(entry.folder, pack, 'pack'), packPath(entry.folder, pack, 'idx')] as const;
    const opened = openPack(options.memory, pack, ...paths);
    keepOpen(entry, pack, opened);
    return opened;
  };
  const keepOpen = (entry: Entry, pack: string, opened: Promise<OpenPack>) => {
    entry.packs.set(pack, opened);
    if (!entry.retired) openPacks += 1;
    opened.catch(() => {
      if (entry.packs.get(pack) === opened && entry.packs.delete(pack) && !entry.retired) openPacks -= 1;
    });
  };
  const fill = async (entry: Entry, objects: CommittedObjects): Promise<void> => {
    const missing: Promise<{ readonly id: LayerId; readonly pack: OpenPack }>[] = [];
    const start = entry.order.length;
    for (let position = start; position < objects.layers.length; position += 1) {
      const layer = objects.layers.at(position);
      if (layer === undefined) throw new RangeError(`A sequence of layers has none at ${position}`);
      const arrived = arrive(entry, layer, () => fetchWithRoom(entry, layer));
      missing.push(arrived.then(async (present) => ({ id: layer.id, pack: await open(entry, present) })));
    }
    const arrived = await Promise.allSettled(missing);
    for (const [index, result] of arrived.entries()) {
      if (result.status === 'rejected') throw asDatabaseError(result.reason);
      // Another request may have come as far meanwhile.
      if (entry.order.length === start + index) entry.order.push(result.value);
    }
  };

  return {
    acquire: async (objects) => {
      const entry = await hold(objects);
      try {
        const count = objects.layers.length;
        if (entry.order.length < count) await fill(entry, objects);
        if (entry.order[count - 1]?.id !== objects.layers.at(count - 1)?.id) {
          throw new TypeError(`Layers of ${entry.key} changed without a new shrink epoch`);
        }
        const packs = new Set(entry.order.slice(0, count).map(({ pack }) => pack));
        return { folder: entry.folder, packs: [...packs], release: once(() => release(entry)) };
      } catch (error) {
        release(entry);
        throw error;
      }
    },
    install: async (lease, layer, files, opened) => {
      const entry = known.get(entryKey(lease.folder.repository, lease.folder.shrinkEpoch));
      // A folder on its way out: the next one is filled from the store.
      if (entry?.folder !== lease.folder) return false;
      let moved = false;
      await arrive(entry, layer, async () => {
        const added = await addPack(entry.folder, layer, files);
        moved = true;
        if (!entry.packs.has(layer.pack)) {
          opened.file.file.path = packPath(entry.folder, layer.pack, 'pack');
          opened.index.file.path = packPath(entry.folder, layer.pack, 'idx');
          keepOpen(entry, layer.pack, Promise.resolve(opened));
        }
        return added;
      });
      return moved;
    },
    drop: (repository) => {
      for (const entry of [...known.values()]) if (entry.folder.repository === repository) retire(entry);
    },
    sizeBytes: () => totalBytes,
    incoming,
    settled: () => background,
  };
}

function newEntry(folder: CacheFolder, checked: boolean): Entry {
  let bytes = 0;
  for (const { packBytes, idxBytes } of folder.present.values()) bytes += packBytes + idxBytes;
  const key = entryKey(folder.repository, folder.shrinkEpoch);
  const memory = { order: [], packs: new Map(), arriving: new Map(), unnoted: [] };
  return { key, folder, ...memory, checked, leases: 0, bytes, retired: false };
}

function entryKey(repository: RepositoryId, shrinkEpoch: number): string {
  return `${repository}/${shrinkEpoch}`;
}

function once(work: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    work();
  };
}

function asDatabaseError(cause: unknown): Error {
  if (cause instanceof ObjectDatabaseError) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new ObjectDatabaseError('object-database-unavailable', message, { cause });
}
