/**
 * The wide form of a push: a list of updates too long for one event, kept in parts (architecture, Streams).
 *
 * Must stay true: the parts are in the log before the `RefsUpdated` that names them, and whoever folds that
 * event reads them back whole, checked by count and digest; no part, and no `RefsUpdated` with the push options it
 * may carry, reaches the bound of an append.
 */
import { type StreamName, streamName } from '../kernel/envelope.ts';
import { canonicalJson } from '../kernel/json.ts';
import { APPEND_SIZE_BYTES_MAX } from '../kernel/limits.ts';
import type { RefUpdatesPart, StoredRefUpdate, UpdateParts } from './events.ts';

/** Left for the rest of an append: envelopes, the layer, the choice of a default branch. */
const OTHER_BYTES_MAX = 64 * 1024;
const UPDATES_BYTES_MAX = APPEND_SIZE_BYTES_MAX - OTHER_BYTES_MAX;

/** UTF-8 bytes that a text takes in canonical JSON, at most: three a code unit, or two for what is escaped. */
function textBytes(text: string): number {
  return text.length * 3 + 3;
}

/** The same of an update: beside the name it takes at most 204 bytes. */
function updateBytes(update: StoredRefUpdate): number {
  return textBytes(update.ref) + 260;
}

/** Whether the updates fit into `RefsUpdated` itself, beside its push options. */
export function isNarrow(updates: readonly StoredRefUpdate[], pushOptions: readonly string[]): boolean {
  let total = pushOptions.reduce((sum, option) => sum + textBytes(option), 0);
  for (const update of updates) {
    total += updateBytes(update);
    if (total > UPDATES_BYTES_MAX) return false;
  }
  return true;
}

/** The stream that the parts stand on. */
export function partsStream(parts: Pick<UpdateParts, 'stream'>): StreamName {
  const [category = '', ...rest] = parts.stream.split('-');
  return streamName(category, rest.join('-'));
}

/** The updates in parts, each an event below the bound of an append. */
export function splitUpdates(updates: readonly StoredRefUpdate[]): readonly RefUpdatesPart[] {
  const parts: RefUpdatesPart[] = [];
  let part: StoredRefUpdate[] = [];
  let partBytes = 0;
  for (const update of updates) {
    const bytes = updateBytes(update);
    if (partBytes + bytes > UPDATES_BYTES_MAX) {
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
  return canonicalJson(updates);
}
