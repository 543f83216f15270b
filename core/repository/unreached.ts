/**
 * Objects that no ref reaches: which pushes leave them, and when a compaction drops them.
 *
 * Invariants: a repository is rewritten for them at most once within the retention, whatever is pushed; what a ref
 * reached within the retention stays (docs/architecture.md, invariant 4).
 */
import type { ObjectId, Timestamp } from '../kernel/ids.ts';
import { objectId, plusMs, ZERO_OBJECT_ID } from '../kernel/ids.ts';
import { DROPPING_BYTES_MAX } from '../kernel/limits.ts';
import type { RefsUpdated } from './events.ts';
import { LAYERS_REMOVED_AT_ONCE_MAX } from './limits.ts';
import type { OpenRepository } from './state.ts';

/** Whether a push may have left objects that no ref reaches any more, or never did. */
export function leavesObjects({ refused, updates }: RefsUpdated['data']): boolean {
  return refused > 0 || updates.some(({ kind }) => kind === 'delete' || kind === 'force-push');
}

/** Returns the tips that refs left, but for those that the ref's new tip reaches. */
export function leftTipsOf({ updates }: RefsUpdated['data']): readonly ObjectId[] {
  return updates.flatMap(({ kind, before }) =>
    (kind === 'delete' || kind === 'force-push') && before !== ZERO_OBJECT_ID ? [objectId(before)] : [],
  );
}

/** Whether what no ref has reached within the retention is to be dropped now. */
export function isDroppingDue(state: OpenRepository, now: Timestamp, retentionMs: number): boolean {
  const { uncleanSince, layers } = state;
  if (uncleanSince === null || plusMs(uncleanSince, retentionMs) > now) return false;
  return layers.length > 0 && isDroppable(state);
}

/**
 * Whether a fetch may have every object that the layers hold: a ref once reached each of them, and a purge can remove
 * those that no ref reaches any more.
 */
export function servesAllObjects(state: OpenRepository): boolean {
  return state.onceReached && isDroppable(state);
}

/** Whether one compaction can drop objects: one event must name all layers, and one disk must hold them twice. */
export function isDroppable({ layers, layersSizeBytes }: OpenRepository): boolean {
  return layers.length <= LAYERS_REMOVED_AT_ONCE_MAX && layersSizeBytes <= DROPPING_BYTES_MAX;
}
