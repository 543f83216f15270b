/**
 * A repository on this node's disk at one shrink epoch: its folder, who uses it, and what of it is open.
 *
 * Invariants:
 * - while somebody has a lease, the entry keeps its open packs, and its folder is not removed;
 * - a retired entry stays retired, and nobody gets a new lease on it;
 * - the totals are the sums over all entries that are not retired;
 * - the open layers are the first ones of the repository's sequence, without a gap;
 * - a layer arrives once, and a pack is opened once, however many requests wait for it.
 */
import type { Sequence } from '../../../core/kernel/append-list.ts';
import type { LayerId, RepositoryId } from '../../../core/kernel/ids.ts';
import type { CacheLooks } from '../../../core/kernel/shown-caches.ts';
import type { CommittedObjects } from '../../../core/ports/object-database.ts';
import type { Layer } from '../../../core/repository/layer.ts';
import type { OpenPack } from '../packs/object-source.ts';
import { type CacheFolder, isThere, isWhole, type PresentLayer, recordLayers } from './cache-folder.ts';

/** What all entries of a cache take together. */
export interface CacheTotals {
  /** Bytes of packs and indexes. */
  bytes: number;
  openPacks: number;
}

export interface CacheEntryOptions {
  readonly folder: CacheFolder;
  /** Whether its files are known to be there. If not, they are checked at the first use. */
  readonly checked: boolean;
  /** The number of doubts (`CacheEntries.doubt`) up to which its layers are known to be committed; -1 for none. */
  readonly vouched: number;
  /** Older entries of the repository, to retire once somebody has read it at this epoch. */
  readonly superseded?: readonly CacheEntry[];
  readonly totals: CacheTotals;
  /** The looks for open packs of all entries. */
  readonly packLooks: CacheLooks;
}

export class CacheEntry {
  readonly key: string;
  readonly folder: CacheFolder;
  readonly #totals: CacheTotals;
  readonly #packLooks: CacheLooks;
  #leases = 0;
  #isRetired = false;
  #bytes: number;
  #checked: boolean;
  #vouched: number;
  #superseded: readonly CacheEntry[];
  readonly #packs = new Map<string, Promise<OpenPack>>();
  /** The first layers of the repository, as far as all their packs are open. */
  readonly #order: { readonly id: LayerId; readonly pack: OpenPack }[] = [];
  /** What `packsOf` returned last: the next lease mostly needs the same. */
  #leased: { readonly count: number; readonly packs: readonly OpenPack[] } | null = null;
  readonly #arriving = new Map<LayerId, Promise<PresentLayer>>();
  /** Layers in the folder that its manifest does not name yet. */
  readonly #unrecorded: PresentLayer[] = [];

  constructor({ folder, checked, vouched, superseded = [], totals, packLooks }: CacheEntryOptions) {
    this.key = entryKey(folder.repository, folder.shrinkEpoch);
    this.folder = folder;
    this.#checked = checked;
    this.#vouched = vouched;
    this.#superseded = superseded;
    this.#totals = totals;
    this.#packLooks = packLooks;
    this.#bytes = bytesOf(folder);
    this.#count({ bytes: this.#bytes });
  }

  get isLeased(): boolean {
    return this.#leases > 0;
  }

  get isRetired(): boolean {
    return this.#isRetired;
  }

  get vouched(): number {
    return this.#vouched;
  }

  get superseded(): readonly CacheEntry[] {
    return this.#superseded;
  }

  /** How many of the repository's first layers are open. */
  get openLayers(): number {
    return this.#order.length;
  }

  get openPacks(): number {
    return this.#packs.size;
  }

  /** Whether layers are on their way into the folder. */
  get isFilling(): boolean {
    return this.#arriving.size > 0;
  }

  lease(): void {
    if (this.#isRetired) throw new TypeError(`Entry ${this.key} is retired: nobody may lease it`);
    this.#leases += 1;
  }

  /** Ends one lease. Returns whether it was the last. */
  release(): boolean {
    if (this.#leases === 0) throw new TypeError(`Entry ${this.key} was released more often than leased`);
    this.#leases -= 1;
    return this.#leases === 0;
  }

  /** Takes what the entry holds out of the totals. Returns false if it was retired before. */
  retire(): boolean {
    if (this.#isRetired) return false;
    this.#count({ bytes: -this.#bytes, openPacks: -this.#packs.size });
    this.#isRetired = true;
    return true;
  }

  /** Returns the entries that this one supersedes, once: the caller retires them. */
  takeSuperseded(): readonly CacheEntry[] {
    const taken = this.#superseded;
    this.#superseded = [];
    return taken;
  }

  /** Whether the folder's files are there. The first use looks at each file, later ones only at the folder. */
  async isUsable(): Promise<boolean> {
    const usable = this.#checked ? isThere(this.folder) : await isWhole(this.folder);
    this.#checked = true;
    return usable;
  }

  /** Whether the folder holds only committed layers. They are compared again only after another doubt. */
  holdsOnly({ layers }: CommittedObjects, doubts: number): boolean {
    if (this.#vouched === doubts) return true;
    const committed = new Set(Array.from(layers, ({ id }) => id));
    for (const id of this.folder.present.keys()) if (!committed.has(id)) return false;
    this.#vouched = doubts;
    return true;
  }

  /** Counts bytes that came into the folder. */
  grow(bytes: number): void {
    this.#bytes += bytes;
    this.#count({ bytes });
  }

  /** Resolves when the layer is in the folder. Obtains it only if it is neither there nor on its way. */
  arrive({ id, sha256 }: Layer, obtain: () => Promise<PresentLayer>): Promise<PresentLayer> {
    const present = this.folder.present.get(id);
    if (present !== undefined && present.sha256 === sha256) return Promise.resolve(present);
    const running = this.#arriving.get(id);
    if (running !== undefined) return running;
    const arriving = this.#obtain(id, obtain);
    this.#arriving.set(id, arriving);
    return arriving;
  }

  async #obtain(id: LayerId, obtain: () => Promise<PresentLayer>): Promise<PresentLayer> {
    try {
      return await obtain();
    } finally {
      this.#arriving.delete(id);
    }
  }

  /** Resolves when all layers that are on their way now have arrived or failed. */
  async filled(): Promise<void> {
    await Promise.allSettled(this.#arriving.values());
  }

  /** Notes a layer for the manifest. Returns whether it is the first one: then the caller calls `record` later. */
  noteUnrecorded(layer: PresentLayer): boolean {
    this.#unrecorded.push(layer);
    return this.#unrecorded.length === 1;
  }

  /** Adds the noted layers to the folder's manifest, which a retired entry does not need. */
  async record(): Promise<void> {
    if (!this.#isRetired) await recordLayers(this.folder, this.#unrecorded.splice(0));
  }

  /** The pack, if it is open or is being opened. */
  opened(pack: string): Promise<OpenPack> | null {
    const opened = this.#packs.get(pack);
    if (opened === undefined) {
      this.#packLooks.misses += 1;
      return null;
    }
    this.#packLooks.hits += 1;
    return opened;
  }

  /** Keeps a pack that is not open yet for all who read it. One that cannot be opened is forgotten. */
  keepOpen(pack: string, opened: Promise<OpenPack>): void {
    opened.catch(() => {
      if (this.#packs.get(pack) === opened && this.#packs.delete(pack)) this.#count({ openPacks: -1 });
    });
    if (this.#packs.has(pack)) throw new TypeError(`Pack ${pack} of entry ${this.key} is open already`);
    this.#packs.set(pack, opened);
    this.#count({ openPacks: 1 });
  }

  /**
   * Whether the open layers and this sequence are the same, up to the end of the shorter one. The sequence of an epoch
   * only grows, so it is enough to compare one layer.
   */
  beginsLike(layers: Sequence<Layer>): boolean {
    const last = Math.min(this.#order.length, layers.length) - 1;
    return last < 0 || this.#order[last]?.id === layers.at(last)?.id;
  }

  /** Whether all these layers are open. */
  hasOpen(layers: Sequence<Layer>): boolean {
    const last = layers.length - 1;
    return last < 0 || this.#order[last]?.id === layers.at(last)?.id;
  }

  /** Adds the open layer of a position, unless another request has added it. */
  append(position: number, id: LayerId, pack: OpenPack): void {
    if (this.#order.length === position) this.#order.push({ id, pack });
  }

  /** The packs of the first open layers, each once, in the order of the layers. */
  packsOf(count: number): readonly OpenPack[] {
    if (this.#leased?.count !== count) {
      this.#leased = { count, packs: [...new Set(this.#order.slice(0, count).map(({ pack }) => pack))] };
    }
    return this.#leased.packs;
  }

  /** Forgets the open packs, unless somebody has a lease. */
  forgetPacks(): void {
    if (this.isLeased) return;
    this.#count({ openPacks: -this.#packs.size });
    this.#packs.clear();
    this.#order.length = 0;
    this.#leased = null;
  }

  #count({ bytes = 0, openPacks = 0 }: Partial<CacheTotals>): void {
    if (this.#isRetired) return;
    this.#totals.bytes += bytes;
    this.#totals.openPacks += openPacks;
  }
}

export function entryKey(repository: RepositoryId, shrinkEpoch: number): string {
  return `${repository}/${shrinkEpoch}`;
}

/** Two layers may have the same pack, which counts once. */
function bytesOf(folder: CacheFolder): number {
  const sizes = new Map<string, number>();
  for (const { pack, packBytes, idxBytes } of folder.present.values()) sizes.set(pack, packBytes + idxBytes);
  let bytes = 0;
  for (const size of sizes.values()) bytes += size;
  return bytes;
}
