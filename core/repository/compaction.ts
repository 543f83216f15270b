/**
 * Which layers a compaction merges, and when one is wanted.
 *
 * Invariants: after a compaction the layers' sizes are a geometric series, so that a repository of any number of
 * pushes has few layers, and each byte is rewritten a logarithmic number of times. What is merged holds at most
 * `COMPACTED_LAYER_BYTES_MAX` bytes.
 */
import { GIB } from '../kernel/byte-units.ts';
import { partsToMerge } from '../kernel/geometric-series.ts';
import { COMPACTION_IDLE_MS, LAYERS_MAX } from '../kernel/limits.ts';
import type { Layer } from './layer.ts';
import { LAYERS_REMOVED_AT_ONCE_MAX } from './limits.ts';

/** With this many layers a repository is compacted when `COMPACTION_IDLE_MS` have passed. */
export const LAYERS_AT_REST_MAX = 8;
/**
 * Larger layers are not compacted again: rewriting one would cost more than its request saves. Internal: compactions
 * change no answer.
 */
export const COMPACTED_LAYER_BYTES_MAX = GIB;

/** Returns the layers to merge, the smallest first; none if fewer than two can be merged. */
export function layersToMerge(layers: Iterable<Layer>): readonly Layer[] {
  const small = [...layers].filter(({ sizeBytes }) => sizeBytes <= COMPACTED_LAYER_BYTES_MAX);
  const chosen: Layer[] = [];
  let sizeBytes = 0;
  for (const layer of partsToMerge(small, (one) => one.sizeBytes)) {
    sizeBytes += layer.sizeBytes;
    if (sizeBytes > COMPACTED_LAYER_BYTES_MAX || chosen.length === LAYERS_REMOVED_AT_ONCE_MAX) break;
    chosen.push(layer);
  }
  return chosen.length < 2 ? [] : chosen;
}

/** Returns in how many milliseconds a repository of this many layers is to be compacted; null for never. */
export function compactionWantedInMs(layers: number): number | null {
  if (layers >= LAYERS_MAX) return 0;
  return layers > LAYERS_AT_REST_MAX ? COMPACTION_IDLE_MS : null;
}
