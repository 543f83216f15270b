/**
 * Finds whether packs that came during a drop hold an object that the drop removes with the packs that it replaces: a
 * base that git appended to a thin pack, or an object that a client sent again.
 *
 * Invariants: it says no only if it looked for every object of the later packs in every replaced pack. Its memory
 * does not grow with the number of replaced packs.
 */
import { createTurns } from '../packs/event-loop-turns.ts';
import type { FilePages } from '../packs/file-pages.ts';
import { openPackIndex, type PackIndex } from '../packs/pack-index.ts';
import { hasObject, isInAny, LOOKUPS_MAX, LOOKUPS_TURN_MS } from '../packs/pack-lookups.ts';

export interface DroppedObjectsOptions {
  readonly pages: FilePages;
  readonly indexPath: (pack: string) => string;
  /** The packs that are replaced. */
  readonly replaced: ReadonlySet<string>;
  readonly signal: AbortSignal;
  /** How many objects of later packs are looked for in replaced packs, over all questions. */
  readonly lookupsMax?: number;
}

export interface DroppedObjects {
  /**
   * Whether one of the later packs holds an object that a replaced pack holds and no kept pack does; true as well where
   * that takes too many look-ups.
   */
  areIn(later: ReadonlySet<string>, kept: readonly string[]): Promise<boolean>;
}

export function createDroppedObjects(options: DroppedObjectsOptions): DroppedObjects {
  const { pages, indexPath, replaced, signal } = options;
  const open = async (pack: string): Promise<PackIndex> => openPackIndex(pages, await pages.open(indexPath(pack)));
  let lookupsLeft = options.lookupsMax ?? LOOKUPS_MAX;
  return {
    areIn: async (later, kept) => {
      const wanted: PackIndex[] = [];
      for (const pack of later) {
        const index = await open(pack);
        lookupsLeft -= index.objectCount * replaced.size;
        if (lookupsLeft < 0) return true;
        wanted.push(index);
      }
      const keptIndexes = await Promise.all(kept.map(open));
      const turns = createTurns(LOOKUPS_TURN_MS, signal);
      for (const pack of replaced) {
        const index = [await open(pack)];
        const isDropped = async (id: Uint8Array) => (await isInAny(index, id)) && !(await isInAny(keptIndexes, id));
        for (const part of wanted) if (await hasObject(part, isDropped, turns)) return true;
      }
      return false;
    },
  };
}
