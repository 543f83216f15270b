/**
 * Brings layers onto this node's disk: from the layer store, or from a push that this node received.
 *
 * Invariants: a layer is never brought twice at the same time, however many requests wait for it; after it arrived,
 * it counts towards the cache's size and is added to its folder's manifest. Layers of one bucket of a user do not wait
 * for those of another, nor for the platform's.
 */
import { createFairSlots, type FairSlots } from '../../../core/kernel/fair-slots.ts';
import type { Uuid } from '../../../core/kernel/ids.ts';
import type { LayerPlace, LayerStores } from '../../../core/ports/layer-stores.ts';
import type { Layer } from '../../../core/repository/layer.ts';
import { fetchLayer } from '../layers/layer-fetch.ts';
import type { PackBytes } from '../packs/joined-pack.ts';
import type { PackFiles } from '../packs/object-source.ts';
import type { GitLog } from '../process/log.ts';
import type { CacheEntries } from './cache-entries.ts';
import type { CacheEntry } from './cache-entry.ts';
import {
  addPack,
  type CacheFolder,
  copyLayers,
  holdPack,
  isMissing,
  type PresentLayer,
  writeHeld,
  writePack,
} from './cache-folder.ts';
import type { WithDiskSpace } from './disk-space.ts';
import type { IncomingFolders } from './incoming-folders.ts';

/**
 * Layers fetched at the same time: from the platform's storage in all, and for one repository; from one bucket of a
 * user. Internal: further layers wait.
 */
const FETCHES_MAX = 16;
const FETCHES_PER_REPOSITORY_MAX = 6;
const FETCHES_PER_BUCKET_MAX = 6;

export interface LayerArrivalsOptions {
  readonly entries: CacheEntries;
  readonly layers: LayerStores;
  readonly incoming: IncomingFolders;
  readonly withDiskSpace: WithDiskSpace;
  readonly log: GitLog;
}

/** Layers of one repository. */
export interface WantedLayers {
  readonly place: LayerPlace;
  readonly layers: readonly Layer[];
}

interface BucketSlots {
  readonly slots: FairSlots;
  /** Fetches that hold a slot or wait for one. */
  users: number;
}

function newBucketSlots(): BucketSlots {
  const slots = createFairSlots({ slots: FETCHES_PER_BUCKET_MAX, slotsPerKey: FETCHES_PER_REPOSITORY_MAX });
  return { slots, users: 0 };
}

export class LayerArrivals {
  readonly #options: LayerArrivalsOptions;
  readonly #slots: FairSlots = createFairSlots({ slots: FETCHES_MAX, slotsPerKey: FETCHES_PER_REPOSITORY_MAX });

  /** The buckets that layers are fetched from now. */
  readonly #buckets = new Map<Uuid, BucketSlots>();

  constructor(options: LayerArrivalsOptions) {
    this.#options = options;
  }

  /** Resolves when the layer is in the entry's folder; fetches it from the store if it is not there yet. */
  fetch(entry: CacheEntry, place: LayerPlace, layer: Layer): Promise<PresentLayer> {
    const fetch = () => this.#fetchInto(entry.folder, place, layer, entry.key);
    return this.#arrive(entry, layer, () => this.#options.withDiskSpace(layer.sizeBytes, fetch));
  }

  /**
   * As `fetch`, for a layer whose pack is in files on this disk, or in memory. Calls `onMoved` only if the entry has
   * taken them.
   */
  move(entry: CacheEntry, layer: Layer, pack: PackFiles | PackBytes, onMoved: () => void): Promise<PresentLayer> {
    return this.#arrive(entry, layer, async () => {
      const added =
        'packPath' in pack ? await addPack(entry.folder, layer, pack) : await this.#hold(entry, layer, pack);
      onMoved();
      return added;
    });
  }

  /** Keeps a pack in memory while it fits, else writes it now. */
  async #hold(entry: CacheEntry, layer: Layer, bytes: PackBytes): Promise<PresentLayer> {
    const { folder } = entry;
    if (!folder.held.memory.fits(bytes)) return writePack(folder, layer, bytes);
    const held = holdPack(folder, layer, bytes);
    this.#options.entries.holds(entry);
    return held;
  }

  /**
   * Brings the layers' own packs into a folder of the caller's: as links where the entry has them alone, else fetched
   * again.
   */
  async bring(entry: CacheEntry | null, wanted: WantedLayers, folder: CacheFolder): Promise<void> {
    const { place, layers } = wanted;
    if (entry !== null) await copyLayers(entry.folder, folder, this.alone(entry, layers));
    const key = entry?.key ?? folder.path;
    const missing = layers.filter(({ id }) => !folder.present.has(id));
    const fetched = await Promise.allSettled(missing.map((layer) => this.#fetchInto(folder, place, layer, key)));
    for (const result of fetched) if (result.status === 'rejected') throw result.reason;
    // Its packs are read as files too, not by git alone.
    await writeHeld(folder);
  }

  /** Those of the layers whose own packs the entry has: not merged with others. */
  alone({ folder }: CacheEntry, layers: readonly Layer[]): readonly PresentLayer[] {
    return layers.flatMap(({ id, sha256, pack }) => {
      const present = folder.present.get(id);
      return present?.sha256 === sha256 && present.pack === pack ? [present] : [];
    });
  }

  #arrive(entry: CacheEntry, layer: Layer, obtain: () => Promise<PresentLayer>): Promise<PresentLayer> {
    return entry.arrive(layer, async () => {
      const added = await obtain();
      this.#options.entries.grow(entry, added.packBytes + added.idxBytes);
      this.#record(entry, added);
      return added;
    });
  }

  /** Adds the layer to the manifest in the background; layers that arrive quickly are added together. */
  #record(entry: CacheEntry, added: PresentLayer): void {
    const { entries, log } = this.#options;
    // It is added when its files are there.
    if (entry.folder.held.get(added.pack) !== null) return;
    if (!entry.noteUnrecorded(added)) return;
    entries.disk.enqueue(async () => {
      try {
        await entry.record();
      } catch (error) {
        // The only consequence is that the layer is fetched again after a restart.
        if (!isMissing(error)) log.warn({ folder: entry.folder.path, error }, 'A manifest could not be written');
      }
    });
  }

  /** Fetches that have the same key take turns. */
  async #fetchInto(target: CacheFolder, place: LayerPlace, layer: Layer, key: string): Promise<PresentLayer> {
    const { incoming, layers } = this.#options;
    const done = await this.#acquire(place, key);
    try {
      const folder = await incoming.take();
      try {
        return await addPack(target, layer, await fetchLayer(layers, place, layer, folder));
      } finally {
        await incoming.remove(folder);
      }
    } finally {
      done();
    }
  }

  async #acquire({ storageBucketId }: LayerPlace, key: string): Promise<() => void> {
    if (storageBucketId === null) return this.#slots.acquire(key);
    const ofBucket = this.#buckets.get(storageBucketId) ?? newBucketSlots();
    this.#buckets.set(storageBucketId, ofBucket);
    ofBucket.users += 1;
    const done = await ofBucket.slots.acquire(key);
    return () => {
      done();
      ofBucket.users -= 1;
      if (ofBucket.users === 0) this.#buckets.delete(storageBucketId);
    };
  }
}
