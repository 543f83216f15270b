/**
 * The wide form of a push: a list of updates too long for one event, kept in parts (architecture, Streams).
 *
 * Must stay true: the parts are in the log before the `RefsUpdated` that names them, and whoever folds that
 * event reads them back whole, checked by count and digest.
 */
import type { JsonValue } from '../kernel/json.ts';
import { canonicalJson } from '../kernel/json.ts';
import type { RefUpdatesPart, StoredRefUpdate } from './events.ts';

/** Bytes of updates in one part, well below an append's bound with its envelope. */
const PART_SIZE_BYTES_MAX = 768 * 1024;
/** Lists below this stand in `RefsUpdated` itself. */
export const NARROW_UPDATES_BYTES_MAX = 512 * 1024;

/** UTF-8 bytes of an update's canonical JSON, at most: names are at most three bytes a code unit. */
function sizeBytes(update: StoredRefUpdate): number {
  return update.ref.length * 3 + 260;
}

/** Whether the updates fit into `RefsUpdated` itself. */
export function isNarrow(updates: readonly StoredRefUpdate[]): boolean {
  let total = 0;
  for (const update of updates) total += sizeBytes(update);
  return total <= NARROW_UPDATES_BYTES_MAX;
}

/** The updates in parts, each an event below the bound of an append. */
export function splitUpdates(updates: readonly StoredRefUpdate[]): readonly RefUpdatesPart[] {
  const parts: RefUpdatesPart[] = [];
  let part: StoredRefUpdate[] = [];
  let partBytes = 0;
  for (const update of updates) {
    const bytes = sizeBytes(update);
    if (partBytes + bytes > PART_SIZE_BYTES_MAX) {
      parts.push({ type: 'RefUpdatesPart', data: { updates: part } });
      part = [];
      partBytes = 0;
    }
    part.push(update);
    partBytes += bytes;
  }
  if (part.length > 0) parts.push({ type: 'RefUpdatesPart', data: { updates: part } });
  return parts;
}

/** The text whose SHA-256 a `RefsUpdated` names. */
export function updatesDigestText(updates: readonly StoredRefUpdate[]): string {
  return canonicalJson(updates as readonly JsonValue[]);
}
