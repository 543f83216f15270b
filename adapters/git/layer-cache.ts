/**
 * The layers on this node: fetched and checked when a repository is opened, kept for the next time.
 *
 * Must stay true: each layer is fetched once at a time, whoever waits for it; every folder can be made again from
 * the layer store.
 */
import { join } from 'node:path';
import type { LayerId, RepositoryId } from '../../core/kernel/ids.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import { type CommittedObjects, type Layer, ObjectDatabaseError } from '../../core/ports/object-database.ts';
import { type CacheEntry, openCacheEntries } from './cache-entries.ts';
import {
  addPack,
  type CacheFolder,
  copyLayers,
  isMissing,
  noteLayers,
  type PackFiles,
  type PresentLayer,
  packPath,
  startCache,
} from './cache/cache-folder.ts';
import { createFairSlots } from './process/fair-slots.ts';
import { createIncomingFolders, type IncomingFolders } from './cache/incoming-folders.ts';
import { fetchLayer, isDiskFull } from './cache/layer-fetch.ts';
import type { GitLog } from './process/log.ts';
import { type OpenPack, openPack, type PackMemory } from './packs/object-source.ts';

/** A hold on a repository's folder; whoever has one gives it back once. */
export interface CacheLease {
  readonly folder: CacheFolder;
  /** Packs that hold the layers asked for, in their order; the last is the newest. */
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
  /** Makes a folder with the same layers in fewer packs; null when that is not worth it. */
  readonly merge: (folder: CacheFolder, incoming: IncomingFolders, parent: string) => Promise<CacheFolder | null>;
  /** Packs in a folder before they are merged. */
  readonly packsMax: number;
}

/** Layers fetched at once, and of them for one repository. */
const FETCHES_MAX = 16;
const FETCHES_PER_REPOSITORY_MAX = 6;

export async function createLayerCache(options: LayerCacheOptions): Promise<LayerCache> {
  const { directory, log } = options;
  const paths = {
    repositories: join(directory, 'repositories'),
    incoming: join(directory, 'incoming'),
    trash: join(directory, 'trash'),
  };
  await startCache(directory, paths);
  const entries = await openCacheEntries(paths, options.cacheBytesMax, log);
  const slots = createFairSlots({ slots: FETCHES_MAX, slotsPerKey: FETCHES_PER_REPOSITORY_MAX });
  const incoming = createIncomingFolders(paths.incoming);
  // One at a time, and not among the entries' own work, which arriving layers may wait for.
  let merging: Promise<void> = Promise.resolve();

  const arrive = (entry: CacheEntry, layer: Layer, bring: () => Promise<PresentLayer>): Promise<PresentLayer> => {
    const present = entry.folder.present.get(layer.id);
    if (present !== undefined && present.sha256 === layer.sha256) return Promise.resolve(present);
    const running = entry.arriving.get(layer.id);
    if (running !== undefined) return running;
    const arriving = bring()
      .then((added) => {
        entries.grow(entry, added.packBytes + added.idxBytes);
        note(entry, added);
        return added;
      })
      .finally(() => entry.arriving.delete(layer.id));
    entry.arriving.set(layer.id, arriving);
    return arriving;
  };
  /** Behind the request's back, and several at once when they come fast. */
  const note = (entry: CacheEntry, added: PresentLayer) => {
    entry.unnoted.push(added);
    if (entry.unnoted.length > 1) return;
    entries.later(async () => {
      try {
        if (!entry.retired) await noteLayers(entry.folder, entry.unnoted.splice(0));
      } catch (error) {
        // Only a restart misses it: then the layer is fetched again.
        if (!isMissing(error)) log.warn({ folder: entry.folder.path, error }, 'A manifest was not written');
      }
    });
  };
  const fetchInto = async (entry: CacheEntry, layer: Layer): Promise<PresentLayer> => {
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
  const fetchWithRoom = async (entry: CacheEntry, layer: Layer): Promise<PresentLayer> => {
    try {
      return await fetchInto(entry, layer);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      // Other repositories can be had again; the one that is asked for now is worth their room.
      entries.evict(Math.max(0, entries.sizeBytes() / 2 - layer.sizeBytes));
      await entries.settled();
      return fetchInto(entry, layer);
    }
  };

  const open = (entry: CacheEntry, { pack }: PresentLayer): Promise<OpenPack> => {
    const already = entry.packs.get(pack);
    if (already !== undefined) return already;
    const files = [packPath(entry.folder, pack, 'pack'), packPath(entry.folder, pack, 'idx')] as const;
    const opened = openPack(options.memory, pack, ...files);
    entries.keepOpen(entry, pack, opened);
    return opened;
  };
  const fill = async (entry: CacheEntry, objects: CommittedObjects): Promise<void> => {
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

  /** Puts a folder of fewer packs in an entry's place, with all that arrived while it was made. */
  const mergePacks = async (entry: CacheEntry): Promise<void> => {
    const merged = await options.merge(entry.folder, incoming, paths.repositories);
    if (merged === null) return;
    for (;;) {
      const behind = [...entry.folder.present.values()].filter(({ id }) => !merged.present.has(id));
      if (entry.retired) return entries.remove(merged);
      if (behind.length === 0 && entry.arriving.size === 0) return entries.replace(entry, merged);
      await copyLayers(entry.folder, merged, behind);
      await Promise.allSettled(entry.arriving.values());
    }
  };
  const considerMerge = (entry: CacheEntry) => {
    if (entry.packs.size < options.packsMax || entry.merging || entry.retired) return;
    const held = entries.holdExisting(entry.folder.repository, entry.folder.shrinkEpoch);
    if (held !== entry) {
      if (held !== null) entries.release(held);
      return;
    }
    entry.merging = true;
    merging = merging
      .then(() => mergePacks(entry))
      // It stays as it is, slower; `merging` stays set, so that it is not tried at every push.
      .catch((error: unknown) => log.warn({ folder: entry.folder.path, error }, 'Packs were not merged'))
      .finally(() => entries.release(entry));
  };

  return {
    acquire: async (objects) => {
      const entry = await entries.hold(objects);
      try {
        const count = objects.layers.length;
        if (entry.order.length < count) await fill(entry, objects);
        if (entry.order[count - 1]?.id !== objects.layers.at(count - 1)?.id) {
          throw new TypeError(`Layers of ${entry.key} changed without a new shrink epoch`);
        }
        considerMerge(entry);
        if (entry.leased?.count !== count) {
          entry.leased = { count, packs: [...new Set(entry.order.slice(0, count).map(({ pack }) => pack))] };
        }
        let released = false;
        const release = () => {
          if (!released) entries.release(entry);
          released = true;
        };
        return { folder: entry.folder, packs: entry.leased.packs, release };
      } catch (error) {
        entries.release(entry);
        throw error;
      }
    },
    install: async (lease, layer, files, opened) => {
      // Perhaps another folder by now than the one that was leased, with the same objects.
      const entry = entries.holdExisting(lease.folder.repository, lease.folder.shrinkEpoch);
      if (entry === null) return false;
      let moved = false;
      try {
        await arrive(entry, layer, async () => {
          const added = await addPack(entry.folder, layer, files);
          moved = true;
          if (!entry.packs.has(layer.pack)) {
            opened.file.file.path = packPath(entry.folder, layer.pack, 'pack');
            opened.index.file.path = packPath(entry.folder, layer.pack, 'idx');
            entries.keepOpen(entry, layer.pack, Promise.resolve(opened));
          }
          return added;
        });
        return moved;
      } finally {
        entries.release(entry);
      }
    },
    drop: entries.drop,
    sizeBytes: entries.sizeBytes,
    incoming,
    settled: async () => {
      await merging;
      await entries.settled();
    },
  };
}

function asDatabaseError(cause: unknown): Error {
  if (cause instanceof ObjectDatabaseError) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new ObjectDatabaseError('object-database-unavailable', message, { cause });
}
