/**
 * The layers on this node: fetched and checked when a repository is opened, then kept for the next time.
 *
 * Invariants: the holder of a lease finds every layer that it acquired, even if the repository is evicted, merged
 * or dropped by others; every folder can be made again from the layer store.
 */
import { join } from 'node:path';
import type { LayerId, RepositoryId } from '../../../core/kernel/ids.ts';
import type { LayerStores } from '../../../core/ports/layer-stores.ts';
import type { CommittedObjects } from '../../../core/ports/object-database.ts';
import type { Layer } from '../../../core/repository/layer.ts';
import type { PagedFile } from '../packs/file-pages.ts';
import { joinable, type PackBytes } from '../packs/joined-pack.ts';
import { movePack, type OpenPack, openHeldPack, openPack, type PackFiles } from '../packs/object-source.ts';
import type { PackMemory } from '../packs/pack-file.ts';
import type { BackgroundWork } from '../process/background-work.ts';
import type { GitLog } from '../process/log.ts';
import { type CacheEntries, keepsAllOf, openCacheEntries } from './cache-entries.ts';
import type { CacheEntry } from './cache-entry.ts';
import { type CacheFolder, isCausedByMissing, type PresentLayer, packPlace, startCache } from './cache-folder.ts';
import { createDiskSpace } from './disk-space.ts';
import { FolderMerges } from './folder-merges.ts';
import { asDatabaseError, HeldMemory } from './held-packs.ts';
import { createIncomingFolders, type IncomingFolders } from './incoming-folders.ts';
import { LayerArrivals } from './layer-arrivals.ts';

/** Packs in memory. */
export interface SmallPacks {
  readonly parts: readonly PackBytes[];
  /** The checksums of these packs, hex. */
  readonly names: ReadonlySet<string>;
}

const NO_SMALL_PACKS: SmallPacks = { parts: [], names: new Set() };

/** A lease on a repository's folder. Its holder must call `release`, which is idempotent. */
export interface CacheLease {
  readonly folder: CacheFolder;
  /** The packs of the acquired layers, in the order of the layers: the last is the newest. */
  readonly packs: readonly OpenPack[];
  release(): void;
}

export interface LayerCache {
  /** Resolves when every layer is on this node and checked. Rejects with an ObjectDatabaseError. */
  acquire(objects: CommittedObjects): Promise<CacheLease>;
  /**
   * Adds a layer whose pack is in files on this disk, or in memory, so that `acquire` need not fetch it. Resolves true
   * if the cache has taken them, false if it does not need them, for example because it fetched the layer first.
   */
  install(lease: CacheLease, layer: Layer, pack: PackFiles | PackBytes, opened: OpenPack): Promise<boolean>;
  /** Does what `install` does, for objects whose shrink epoch nobody reads yet: the layers that stay are kept. */
  installAhead(objects: CommittedObjects, layer: Layer, files: PackFiles, opened: OpenPack): Promise<boolean>;
  /**
   * Brings the packs of some layers into a folder of the caller's, each alone: a pack that this node merged from
   * several layers is fetched again, and so is everything if somebody deleted files of the cache.
   */
  collect(objects: CommittedObjects, layers: readonly Layer[], folder: CacheFolder): Promise<void>;
  /**
   * Reads the smallest packs of some layers, as many as are joined (joined-pack.ts) and this node has each alone; none
   * if somebody deleted files of the cache.
   */
  readSmall(objects: CommittedObjects, layers: readonly Layer[]): Promise<SmallPacks>;
  /** Whether what failed in a leased folder may succeed after `acquire`, since files of it were deleted. */
  isLost(folder: CacheFolder): Promise<boolean>;
  drop(repository: RepositoryId): void;
  /** This node may have applied events that the log has lost: layers of those are not read any more. */
  doubt(): void;
  repositories(): readonly RepositoryId[];
  /** Bytes of packs and indexes in all folders. */
  sizeBytes(): number;
  /** Folders for incoming files, on the same file system. */
  readonly incoming: IncomingFolders;
  /** Bytes of packs that are in memory only. */
  heldBytes(): number;
  /** Writes the packs that are in memory only, so that the next process finds them. */
  writeHeld(): Promise<void>;
  /** Resolves when the merges and the disk work begun so far are done. */
  settled(): Promise<void>;
}

export interface LayerCacheOptions {
  readonly directory: string;
  readonly layers: LayerStores;
  readonly cacheBytesMax: number;
  /** Bytes of packs that are kept in memory until git needs them. */
  readonly heldBytesMax: number;
  readonly memory: PackMemory;
  /** Frees disk space before the cache gives up on a layer. */
  readonly freeDisk: () => Promise<void>;
  readonly background: BackgroundWork;
  readonly log: GitLog;
  /** Makes a folder with the same layers in fewer packs; resolves null when too few can be merged. */
  readonly merge: (folder: CacheFolder, incoming: IncomingFolders, parent: string) => Promise<CacheFolder | null>;
  /** A folder with this many packs is merged. */
  readonly packsMax: number;
  /** Called when a folder begins with packs of another one of the same repository, and will hold all its objects. */
  readonly onBegun: (from: CacheFolder, to: CacheFolder) => Promise<void>;
  /**
   * Called when a compaction on this node has filled the folder that is read from now on instead of another one, and
   * has dropped nothing of it.
   */
  readonly onCompacted: (from: CacheFolder, to: CacheFolder) => Promise<void>;
}

export async function createLayerCache(options: LayerCacheOptions): Promise<LayerCache> {
  const { directory, layers, cacheBytesMax, heldBytesMax, memory, packsMax } = options;
  const { background, log, freeDisk, onBegun, onCompacted } = options;
  const paths = {
    repositories: join(directory, 'repositories'),
    incoming: join(directory, 'incoming'),
    trash: join(directory, 'trash'),
  };
  await startCache(directory, paths);
  const withDiskSpace = createDiskSpace({ entries: () => entries, freeDisk });
  const onFault = (error: unknown) => log.warn({ error }, 'A manifest could not be written');
  const heldMemory = new HeldMemory({ bytesMax: heldBytesMax, withDiskSpace, onFault }).shown();
  const entries = await openCacheEntries({ paths, cacheBytesMax, heldMemory, log, onBegun });
  const incoming = createIncomingFolders(paths.incoming);
  const arrivals = new LayerArrivals({ entries, layers, incoming, withDiskSpace, log });
  const merge = (folder: CacheFolder) => options.merge(folder, incoming, paths.repositories);
  const merges = new FolderMerges({ entries, merge, packsMax, background, log });
  return new DiskLayerCache({ entries, heldMemory, arrivals, merges, incoming, memory, onCompacted });
}

/**
 * Deleting the cache takes its time, in which it may get in the way more than once. Internal: only an operator who
 * deletes the cache reaches it.
 */
const ACQUIRE_ATTEMPTS_MAX = 3;

interface Parts {
  readonly entries: CacheEntries;
  readonly heldMemory: HeldMemory;
  readonly arrivals: LayerArrivals;
  readonly merges: FolderMerges;
  readonly incoming: IncomingFolders;
  readonly memory: PackMemory;
  readonly onCompacted: LayerCacheOptions['onCompacted'];
}

class DiskLayerCache implements LayerCache {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get incoming(): IncomingFolders {
    return this.#parts.incoming;
  }

  async acquire(objects: CommittedObjects): Promise<CacheLease> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#acquireWhole(objects);
      } catch (error) {
        if (attempt === ACQUIRE_ATTEMPTS_MAX || !isCausedByMissing(error)) throw error;
      }
    }
  }

  isLost(folder: CacheFolder): Promise<boolean> {
    return this.#parts.entries.isLost(folder);
  }

  async #acquireWhole(objects: CommittedObjects): Promise<CacheLease> {
    const lease = await this.#acquire(objects);
    if (lease !== null) return lease;
    // The log lost its tail, and another one has begun.
    this.drop(objects.repository);
    const refilled = await this.#acquire(objects);
    if (refilled === null) throw new TypeError(`Layers of ${objects.repository} changed without a new shrink epoch`);
    return refilled;
  }

  /** Resolves null if the entry holds other layers in the places of these. */
  async #acquire(objects: CommittedObjects): Promise<CacheLease | null> {
    const { entries, merges } = this.#parts;
    const entry = await entries.acquire(objects);
    try {
      const { layers } = objects;
      if (entry.beginsLike(layers) && entry.openLayers < layers.length) await this.#fill(entry, objects);
      if (!entry.hasOpen(layers)) {
        entries.release(entry);
        return null;
      }
      merges.mergeIfNeeded(entry);
      return this.#lease(entry, layers.length);
    } catch (error) {
      if (isCausedByMissing(error)) await entries.isLost(entry.folder);
      entries.release(entry);
      throw error;
    }
  }

  async install(lease: CacheLease, layer: Layer, pack: PackFiles | PackBytes, opened: OpenPack): Promise<boolean> {
    const { entries } = this.#parts;
    // By now this may be another folder than the leased one, with the same objects.
    const entry = entries.acquireExisting(lease.folder.repository, lease.folder.shrinkEpoch);
    return entry !== null && this.#moveIn(entry, layer, pack, opened);
  }

  async installAhead(objects: CommittedObjects, layer: Layer, files: PackFiles, opened: OpenPack): Promise<boolean> {
    const { entries, onCompacted } = this.#parts;
    const entry = await entries.acquireAhead(objects);
    // Kept after the pack was moved in.
    const kept = entries.acquireExisting(objects.repository, objects.shrinkEpoch);
    try {
      const moved = await this.#moveIn(entry, layer, files, opened);
      const older = entry.superseded.toSorted((a, b) => b.folder.shrinkEpoch - a.folder.shrinkEpoch)[0];
      const isComplete = [...objects.layers].every(({ id }) => entry.folder.present.has(id));
      // What was fetched from the older folder may be what a compaction dropped.
      const keepsAll = older !== undefined && keepsAllOf(objects, older.folder);
      if (moved && isComplete && keepsAll) await onCompacted(older.folder, entry.folder);
      return moved;
    } finally {
      if (kept !== null) entries.release(kept);
    }
  }

  async collect(objects: CommittedObjects, layers: readonly Layer[], folder: CacheFolder): Promise<void> {
    const { entries, arrivals } = this.#parts;
    const wanted = { place: objects.place, layers };
    const entry = entries.acquireExisting(objects.repository, objects.shrinkEpoch);
    try {
      await arrivals.bring(entry, wanted, folder);
    } catch (error) {
      // Without the entry, whose files somebody deleted, the store has everything.
      if (entry === null || !(await entries.isLost(entry.folder))) throw asDatabaseError(error);
      await arrivals.bring(null, wanted, folder).catch((again: unknown) => {
        throw asDatabaseError(again);
      });
    } finally {
      if (entry !== null) entries.release(entry);
    }
  }

  async readSmall(objects: CommittedObjects, layers: readonly Layer[]): Promise<SmallPacks> {
    const { entries, arrivals, memory } = this.#parts;
    const entry = entries.acquireExisting(objects.repository, objects.shrinkEpoch);
    if (entry === null) return NO_SMALL_PACKS;
    try {
      // Two layers may hold the same pack.
      const alone = new Map(arrivals.alone(entry, layers).map((layer) => [layer.pack, layer]));
      const small = joinable([...alone.values()]);
      const parts: PackBytes[] = [];
      for (const layer of small) {
        const { file, index } = await this.#open(entry, layer);
        const whole = ({ file: of }: { readonly file: PagedFile }) => memory.pages.read(of, 0, of.sizeBytes);
        parts.push({ pack: await whole(file), idx: await whole(index) });
      }
      return { parts, names: new Set(small.map(({ pack }) => pack)) };
    } catch (error) {
      if (await entries.isLost(entry.folder)) return NO_SMALL_PACKS;
      throw asDatabaseError(error);
    } finally {
      entries.release(entry);
    }
  }

  /** Releases the entry. */
  async #moveIn(entry: CacheEntry, layer: Layer, pack: PackFiles | PackBytes, opened: OpenPack): Promise<boolean> {
    const { entries, arrivals } = this.#parts;
    let moved = false;
    try {
      await arrivals.move(entry, layer, pack, () => {
        moved = true;
        if (entry.opened(layer.pack) !== null) return;
        movePack(opened, packPlace(entry.folder, layer.pack));
        entry.keepOpen(layer.pack, Promise.resolve(opened));
      });
      return moved;
    } finally {
      entries.release(entry);
    }
  }

  drop(repository: RepositoryId): void {
    this.#parts.entries.drop(repository);
  }

  doubt(): void {
    this.#parts.entries.doubt();
  }

  repositories(): readonly RepositoryId[] {
    return this.#parts.entries.repositories();
  }

  sizeBytes(): number {
    return this.#parts.entries.sizeBytes;
  }

  heldBytes(): number {
    return this.#parts.heldMemory.bytes;
  }

  writeHeld(): Promise<void> {
    return this.#parts.entries.writeAll();
  }

  async settled(): Promise<void> {
    await this.#parts.merges.settled();
    await this.#parts.entries.disk.settled();
  }

  /** A lease on the packs of an entry's first layers. The caller has acquired the entry. */
  #lease(entry: CacheEntry, count: number): CacheLease {
    let released = false;
    const release = () => {
      if (!released) this.#parts.entries.release(entry);
      released = true;
    };
    return { folder: entry.folder, packs: entry.packsOf(count), release };
  }

  /** Fetches the layers that are missing, and opens their packs in the order of the layers. */
  async #fill(entry: CacheEntry, objects: CommittedObjects): Promise<void> {
    const missing: Promise<{ readonly id: LayerId; readonly pack: OpenPack }>[] = [];
    const start = entry.openLayers;
    for (let position = start; position < objects.layers.length; position += 1) {
      const layer = objects.layers.at(position);
      if (layer === undefined) throw new RangeError(`A sequence of layers has none at ${position}`);
      const arrived = this.#parts.arrivals.fetch(entry, objects.place, layer);
      missing.push(arrived.then(async (present) => ({ id: layer.id, pack: await this.#open(entry, present) })));
    }
    const arrived = await Promise.allSettled(missing);
    for (const [index, result] of arrived.entries()) {
      if (result.status === 'rejected') throw asDatabaseError(result.reason);
      entry.append(start + index, result.value.id, result.value.pack);
    }
  }

  #open(entry: CacheEntry, { pack }: PresentLayer): Promise<OpenPack> {
    const already = entry.opened(pack);
    if (already !== null) return already;
    const { memory } = this.#parts;
    const place = packPlace(entry.folder, pack);
    const held = place.held();
    const opened =
      held === null ? openPack(memory, pack, place.packPath, place.idxPath) : openHeldPack(memory, pack, held, place);
    entry.keepOpen(pack, opened);
    return opened;
  }
}
