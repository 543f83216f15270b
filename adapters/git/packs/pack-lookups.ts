/**
 * Looks for the objects of one pack in others, by their indexes.
 *
 * Invariants: a long search takes turns of the event loop.
 */
import { OBJECT_ID_BYTES } from '../../../core/kernel/ids.ts';
import type { Turns } from './event-loop-turns.ts';
import type { PackIndex } from './pack-index.ts';

/**
 * How many objects are looked for in other packs to answer one question. Internal: beyond it the packs are written
 * again, and hold the same objects.
 */
export const LOOKUPS_MAX = 1_000_000;
const IDS_AT_ONCE = 4_096;
/** How long a search has the event loop at a time. */
export const LOOKUPS_TURN_MS = 2;

/** Whether a pack has an object whose id meets a condition. One question shares its turns over all packs. */
export async function hasObject(
  index: PackIndex,
  meets: (id: Uint8Array) => Promise<boolean>,
  turns: Turns,
): Promise<boolean> {
  for (let start = 0; start < index.objectCount; start += IDS_AT_ONCE) {
    const ids = await index.ids(start, start + IDS_AT_ONCE);
    for (let at = 0; at < ids.length; at += OBJECT_ID_BYTES) {
      if (turns.isOver()) await turns.next();
      if (await meets(ids.subarray(at, at + OBJECT_ID_BYTES))) return true;
    }
  }
  return false;
}

/** Whether any of these packs has the object. */
export async function isInAny(indexes: readonly PackIndex[], id: Uint8Array): Promise<boolean> {
  for (const index of indexes) {
    const offset = index.find(id);
    // Mostly it is known without a wait, which would cost more than the search.
    if ((offset instanceof Promise ? await offset : offset) !== null) return true;
  }
  return false;
}
