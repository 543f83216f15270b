/**
 * Replaces cached repositories of many packs with ones of few packs, while clients read them and push to them.
 *
 * Invariants: one merge runs at a time, and no request waits for it; the new folder replaces the old one only when
 * it holds every layer that the old one does. A merge that failed leaves nothing behind and is tried again later.
 */
import type { BackgroundWork } from '../process/background-work.ts';
import type { GitLog } from '../process/log.ts';
import type { CacheEntries } from './cache-entries.ts';
import type { CacheEntry } from './cache-entry.ts';
import { type CacheFolder, copyLayers } from './cache-folder.ts';

export interface FolderMergesOptions {
  readonly entries: CacheEntries;
  /** Makes a folder with the same layers in fewer packs; resolves null when too few can be merged. */
  readonly merge: (folder: CacheFolder) => Promise<CacheFolder | null>;
  /** A folder with this many packs is merged. */
  readonly packsMax: number;
  /** How long a folder stays as it is after a merge of it failed. */
  readonly retryAfterMs?: number;
  readonly background: BackgroundWork;
  readonly log: GitLog;
}

const RETRY_AFTER_MS = 60_000;

export class FolderMerges {
  readonly #options: FolderMergesOptions;
  /** Separate from the entries' disk work, which arriving layers may wait for. */
  #last: Promise<void> = Promise.resolve();
  /** When an entry may be merged again, by the process's own clock; Infinity during its merge. */
  readonly #mergeableFromMs = new WeakMap<CacheEntry, number>();

  constructor(options: FolderMergesOptions) {
    this.#options = options;
  }

  /** Begins to merge the packs of an entry that has too many, in the background. */
  mergeIfNeeded(entry: CacheEntry): void {
    const { entries, packsMax, retryAfterMs = RETRY_AFTER_MS, background, log } = this.#options;
    const isResting = performance.now() < (this.#mergeableFromMs.get(entry) ?? 0);
    if (entry.openPacks < packsMax || isResting || entry.isRetired) return;
    const leased = entries.acquireExisting(entry.folder.repository, entry.folder.shrinkEpoch);
    if (leased !== entry) {
      if (leased !== null) entries.release(leased);
      return;
    }
    this.#mergeableFromMs.set(entry, Infinity);
    this.#last = background
      .run(() => this.#merge(entry))
      // The folder stays as it is, only slower.
      .catch(async (error: unknown) => {
        log.warn({ folder: entry.folder.path, error }, 'Packs could not be merged');
        await entries.isLost(entry.folder);
      })
      .finally(() => {
        this.#mergeableFromMs.set(entry, performance.now() + retryAfterMs);
        entries.release(entry);
      });
  }

  /** Resolves when no merge is under way. */
  settled(): Promise<void> {
    return this.#last;
  }

  /** Replaces the entry's folder with one of fewer packs, which also gets the layers that arrived in between. */
  async #merge(entry: CacheEntry): Promise<void> {
    const { entries, merge } = this.#options;
    const merged = await merge(entry.folder);
    if (merged === null) return;
    try {
      for (;;) {
        const missing = [...entry.folder.present.values()].filter(({ id }) => !merged.present.has(id));
        if (entry.isRetired) return entries.disk.remove(merged);
        if (missing.length === 0 && !entry.isFilling) return entries.replace(entry, merged);
        await copyLayers(entry.folder, merged, missing);
        await entry.filled();
      }
    } catch (error) {
      entries.disk.remove(merged);
      throw error;
    }
  }
}
