/**
 * The repositories on this node's disk: hands out leases on them, and evicts some when they take too much space.
 *
 * Invariants: a folder with a lease on it stays whole; a retired folder is never handed out again, and is removed
 * from the disk when its last lease is released.
 */
import type { RepositoryId } from '../../../core/kernel/ids.ts';
import { type CacheLooks, type CacheSize, showCache } from '../../../core/kernel/shown-caches.ts';
import type { CommittedObjects } from '../../../core/ports/object-database.ts';
import type { GitLog } from '../process/log.ts';
import { CacheEntry, type CacheEntryOptions, type CacheTotals, entryKey } from './cache-entry.ts';
import {
  type CacheFolder,
  type CachePaths,
  copyLayers,
  findCacheFolders,
  isWhole,
  makeCacheFolder,
  writeHeld,
} from './cache-folder.ts';
import { DiskWork } from './disk-work.ts';
import type { HeldMemory } from './held-packs.ts';

/** How long after the last push of a repository its packs come onto the disk: at least so long, and less than twice. */
const HELD_MS = 30_000;
/**
 * An open index takes 1 to 100 KB of memory. Beyond this many, the least recently used repositories lose theirs.
 * Internal: a closed index is opened again.
 */
const OPEN_PACKS_MAX = 10_000;

export interface CacheEntriesOptions {
  readonly paths: CachePaths;
  readonly cacheBytesMax: number;
  readonly heldMemory: HeldMemory;
  readonly log: GitLog;
  /** Called when a folder begins with packs of another one of the same repository, and will hold all its objects. */
  readonly onBegun: (from: CacheFolder, to: CacheFolder) => Promise<void>;
}

/**
 * Finds the folders that an earlier process left. Each is checked when it is first used. Of two that a merge left for
 * the same repository, the one with more layers stays.
 */
export async function openCacheEntries(options: CacheEntriesOptions): Promise<CacheEntries> {
  const { paths, heldMemory } = options;
  const entries = new CacheEntries(options);
  const found = await findCacheFolders(paths.repositories, heldMemory);
  for (const folder of found.toSorted((a, b) => b.present.size - a.present.size)) {
    if (!entries.has(folder)) entries.add(folder, false);
    else entries.disk.remove(folder);
  }
  return entries;
}

export class CacheEntries {
  readonly #paths: CachePaths;
  readonly #cacheBytesMax: number;
  readonly #heldMemory: HeldMemory;
  readonly #log: GitLog;
  readonly #onBegun: CacheEntriesOptions['onBegun'];
  readonly #disk: DiskWork;
  /** In the order of their last use, oldest first. Entries that are being made are in `#making` only. */
  readonly #known = new Map<string, CacheEntry>();
  readonly #making = new Map<string, Promise<CacheEntry>>();
  /** Entries that may have packs in memory only, and when the last pack came, by the process's own clock. */
  readonly #heldAtMs = new Map<CacheEntry, number>();
  #writing: Promise<void> = Promise.resolve();
  #writingLater: NodeJS.Timeout | null = null;
  readonly #totals: CacheTotals = { bytes: 0, openPacks: 0 };
  readonly #packLooks = showCache('git_open_packs', 'entries', this.#totals, openPacksOf);
  readonly #looks: CacheLooks;
  #doubts = 0;

  constructor({ paths, cacheBytesMax, heldMemory, log, onBegun }: CacheEntriesOptions) {
    this.#paths = paths;
    this.#cacheBytesMax = cacheBytesMax;
    this.#heldMemory = heldMemory;
    this.#log = log;
    this.#onBegun = onBegun;
    this.#disk = new DiskWork(paths.trash, log);
    this.#looks = showCache('git_repositories', 'disk', this, CacheEntries.#sizeOf);
  }

  static #sizeOf(its: CacheEntries): CacheSize {
    return { taken: its.sizeBytes, max: its.#cacheBytesMax };
  }

  /** Bytes of packs and indexes of all entries that are not retired. */
  get sizeBytes(): number {
    return this.#totals.bytes;
  }

  /** Background work on the disk. */
  get disk(): DiskWork {
    return this.#disk;
  }

  /** Whether there is a folder of the same repository at the same epoch. */
  has({ repository, shrinkEpoch }: CacheFolder): boolean {
    return this.#known.has(entryKey(repository, shrinkEpoch));
  }

  add(folder: CacheFolder, checked: boolean): CacheEntry {
    return this.#insert({ folder, checked, vouched: checked ? this.#doubts : -1 });
  }

  #insert(made: Omit<CacheEntryOptions, 'totals' | 'packLooks'>): CacheEntry {
    const entry = new CacheEntry({ ...made, totals: this.#totals, packLooks: this.#packLooks });
    this.#known.set(entry.key, entry);
    if (entry.folder.held.count > 0) this.holds(entry);
    return entry;
  }

  /**
   * Resolves with the entry of this repository at this epoch, and a lease on it. A new entry begins with the layers
   * that another one of the repository has.
   */
  async acquire(objects: CommittedObjects): Promise<CacheEntry> {
    const entry = await this.acquireAhead(objects);
    for (const older of entry.takeSuperseded()) this.#retire(older);
    return entry;
  }

  /** Does what `acquire` does, before anybody reads the repository at this epoch: entries of older epochs stay. */
  async acquireAhead(objects: CommittedObjects): Promise<CacheEntry> {
    const key = entryKey(objects.repository, objects.shrinkEpoch);
    if (this.#known.has(key)) this.#looks.hits += 1;
    else this.#looks.misses += 1;
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
        const isUsable = await entry.isUsable();
        if (isUsable && entry.holdsOnly(objects, this.#doubts)) return entry;
        const why = isUsable ? 'holds layers that the log has lost' : 'was changed from outside';
        this.#log.warn({ repository: objects.repository }, `A cached repository ${why}: refilling it`);
        this.#retire(entry);
      } catch (error) {
        this.release(entry);
        throw error;
      }
      this.release(entry);
    }
  }

  /**
   * From now on an entry is only handed out once its layers were compared with the committed ones: this node may have
   * applied events that the log has lost. A push must not be checked against the objects of such a layer.
   */
  doubt(): void {
    this.#doubts += 1;
  }

  /** Does what `acquire` does, but never makes or checks a folder: null when the repository is not on the disk. */
  acquireExisting(repository: RepositoryId, shrinkEpoch: number): CacheEntry | null {
    const found = this.#known.get(entryKey(repository, shrinkEpoch));
    return found === undefined ? null : this.#take(found);
  }

  /**
   * Whether something that failed in this leased folder may succeed in another, since its files are not whole: then it
   * is retired.
   */
  async isLost(folder: CacheFolder): Promise<boolean> {
    if (await isWhole(folder)) return false;
    const entry = this.#known.get(entryKey(folder.repository, folder.shrinkEpoch));
    if (entry?.folder !== folder) return true;
    this.#log.warn({ repository: folder.repository }, 'A cached repository was changed from outside: refilling it');
    this.#retire(entry);
    return true;
  }

  release(entry: CacheEntry): void {
    if (!entry.release()) return;
    if (entry.isRetired) this.#disk.remove(entry.folder);
    this.evict(this.#cacheBytesMax);
    this.#forgetPacks();
  }

  /**
   * Says that a pack of an entry came into memory only. The packs of an entry are written when no other one has come
   * for a while, so that the next process finds most of them.
   */
  holds(entry: CacheEntry): void {
    this.#heldAtMs.set(entry, performance.now());
    this.#writeLater();
  }

  #writeLater(): void {
    if (this.#writingLater !== null) return;
    this.#writingLater = setTimeout(() => this.#writeOld(), HELD_MS).unref();
  }

  #writeOld(): void {
    this.#writingLater = null;
    const beforeMs = performance.now() - HELD_MS;
    for (const [entry, heldAtMs] of this.#heldAtMs) if (heldAtMs <= beforeMs) this.#writeHeld(entry);
    if (this.#heldAtMs.size > 0) this.#writeLater();
  }

  #writeHeld(entry: CacheEntry): void {
    this.#heldAtMs.delete(entry);
    if (entry.isRetired) return;
    this.#take(entry);
    const { folder } = entry;
    // One entry after the other: all together would have thousands of files open.
    this.#writing = this.#writing
      .then(() => writeHeld(folder))
      // They stay in memory until git needs them, or the entry gets another one.
      .catch((error: unknown) => {
        this.#log.warn({ folder: folder.path, error }, 'Packs in memory could not be written');
      })
      .then(() => this.release(entry));
  }

  /** Writes all packs that are in memory only. */
  async writeAll(): Promise<void> {
    for (const entry of this.#heldAtMs.keys()) this.#writeHeld(entry);
    await this.#writing;
  }

  grow(entry: CacheEntry, bytes: number): void {
    entry.grow(bytes);
    this.evict(this.#cacheBytesMax);
  }

  /** Retires entries without a lease, least recently used first, until all together take at most this many bytes. */
  evict(bytesMax: number): void {
    for (const entry of this.#known.values()) {
      if (this.#totals.bytes <= bytesMax) return;
      if (!entry.isLeased) this.#retire(entry);
    }
  }

  drop(repository: RepositoryId): void {
    for (const entry of this.#known.values()) if (entry.folder.repository === repository) this.#retire(entry);
  }

  repositories(): readonly RepositoryId[] {
    return [...new Set(Array.from(this.#known.values(), ({ folder }) => folder.repository))];
  }

  /** From now on hands out this folder, which has the same objects, instead of the entry's. */
  replace(entry: CacheEntry, folder: CacheFolder): void {
    this.#retire(entry);
    this.#insert({ folder, checked: true, vouched: entry.vouched });
  }

  #take(entry: CacheEntry): CacheEntry {
    entry.lease();
    this.#known.delete(entry.key);
    this.#known.set(entry.key, entry);
    return entry;
  }

  async #make(key: string, objects: CommittedObjects): Promise<CacheEntry> {
    const { repository, shrinkEpoch } = objects;
    try {
      const folder = await makeCacheFolder(this.#paths.repositories, repository, shrinkEpoch, this.#heldMemory);
      const others = [...this.#known.values()].filter(({ folder: other }) => other.repository === repository);
      const newest = others.toSorted((a, b) => b.folder.shrinkEpoch - a.folder.shrinkEpoch)[0];
      if (newest !== undefined) await this.#beginWith(newest, folder, objects);
      const superseded = others.filter(({ folder: other }) => other.shrinkEpoch < shrinkEpoch);
      return this.#insert({ folder, checked: true, vouched: this.#doubts, superseded });
    } finally {
      this.#making.delete(key);
    }
  }

  /**
   * Links the committed layers that another folder of the repository has into a new one. A pack that also holds objects
   * of other layers stays behind: the folder's objects are exactly those of the committed layers.
   */
  async #beginWith(other: CacheEntry, folder: CacheFolder, objects: CommittedObjects): Promise<void> {
    const from = this.#take(other);
    try {
      if (!(await from.isUsable())) return;
      const committed = new Set(Array.from(objects.layers, ({ id }) => id));
      const present = [...from.folder.present.values()];
      const mixed = new Set(present.filter(({ id }) => !committed.has(id)).map(({ pack }) => pack));
      await copyLayers(
        from.folder,
        folder,
        present.filter(({ pack }) => !mixed.has(pack)),
      );
      // Objects of an older folder may be dropped since, and what it says of them would pass for their presence.
      if (keepsAllOf(objects, from.folder)) await this.#onBegun(from.folder, folder);
    } catch (error) {
      // What was not linked is fetched again.
      this.#log.warn({ folder: folder.path, error }, 'Cached layers could not be kept');
    } finally {
      this.release(from);
    }
  }

  #retire(entry: CacheEntry): void {
    if (!entry.retire()) return;
    this.#known.delete(entry.key);
    this.#heldAtMs.delete(entry);
    if (!entry.isLeased) this.#disk.remove(entry.folder);
  }

  #forgetPacks(): void {
    for (const entry of this.#known.values()) {
      if (this.#totals.openPacks <= OPEN_PACKS_MAX) return;
      entry.forgetPacks();
    }
  }
}

/** Whether none of the objects that the folder's layers hold was dropped since. */
export function keepsAllOf({ keptSinceEpoch }: CommittedObjects, folder: CacheFolder): boolean {
  return keptSinceEpoch !== null && folder.shrinkEpoch >= keptSinceEpoch;
}

function openPacksOf({ openPacks }: CacheTotals): CacheSize {
  return { taken: openPacks, max: OPEN_PACKS_MAX };
}
