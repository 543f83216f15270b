/**
 * The wide form of a push: a list of updates too long for one event, stored in parts (docs/architecture.md, Streams).
 *
 * Invariants: the parts are in the log before the `RefsUpdated` that names them. Every reader that folds that event
 * reads all parts back and checks their count and digest. A part stays below `APPEND_SIZE_BYTES_MAX`, and so does a
 * `RefsUpdated` with all the push options it may carry.
 */
import { encodeUtf8 } from '../git/utf8.ts';
import type { Digest } from '../kernel/digest.ts';
import { type StreamName, streamName } from '../kernel/envelope.ts';
import { canonicalJson } from '../kernel/json.ts';
import { APPEND_SIZE_BYTES_MAX } from '../kernel/limits.ts';
import type { RefUpdatesPart, StoredRefUpdate, UpdateParts } from './events.ts';

/**
 * Reserved for the rest of an append: envelopes, the layer, the choice of a default branch. Internal: further updates
 * are stored in parts.
 */
const OTHER_BYTES_MAX = 64 * 1024;
const UPDATES_BYTES_MAX = APPEND_SIZE_BYTES_MAX - OTHER_BYTES_MAX;

/** The most UTF-8 bytes that a text takes in canonical JSON: three for a code unit, or two if it is escaped. */
function textBytes(text: string): number {
  return text.length * 3 + 3;
}

/** The most bytes that an update takes. All of it but the name takes at most 204 bytes. */
function updateBytes(update: StoredRefUpdate): number {
  return textBytes(update.ref) + 260;
}

/** Returns true if the updates fit into the `RefsUpdated` itself, together with its push options. */
export function isNarrow(updates: readonly StoredRefUpdate[], pushOptions: readonly string[]): boolean {
  let total = pushOptions.reduce((sum, option) => sum + textBytes(option), 0);
  for (const update of updates) {
    total += updateBytes(update);
    if (total > UPDATES_BYTES_MAX) return false;
  }
  return true;
}

/** Returns the stream that holds the parts. */
export function partsStream(parts: Pick<UpdateParts, 'stream'>): StreamName {
  const [category = '', ...rest] = parts.stream.split('-');
  return streamName(category, rest.join('-'));
}

/** Splits the updates into parts, in order. Each part is one event that stays below `APPEND_SIZE_BYTES_MAX`. */
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

/** Throws TypeError if these are not the updates that the event's `parts` stand for. */
export function checkParts(
  digest: Pick<Digest, 'sha256'>,
  parts: UpdateParts,
  updates: readonly StoredRefUpdate[],
): void {
  if (updates.length !== parts.updates || digest.sha256(updatesDigestText(updates)) !== parts.sha256) {
    throw otherParts(parts);
  }
}

/** Why an event cannot be read whose parts are not those that it names. */
export function otherParts({ stream }: UpdateParts): TypeError {
  return new TypeError(`The parts on ${stream} are not those that a push names`);
}

/** The digest of updates that come part by part. */
export interface RunningUpdatesDigest {
  add(updates: readonly StoredRefUpdate[]): void;
  /** Returns what `UpdateParts.sha256` holds. Nothing may be added afterwards. */
  hex(): string;
}

/** Begins the SHA-256 of the canonical JSON of a list of updates, in hex. */
export function startUpdatesDigest(digest: Pick<Digest, 'startSha256'>): RunningUpdatesDigest {
  const running = digest.startSha256();
  let isFirst = true;
  return {
    add(updates) {
      if (updates.length === 0) return;
      running.add(encodeUtf8((isFirst ? '[' : ',') + updates.map(canonicalJson).join(',')));
      isFirst = false;
    },
    hex() {
      running.add(encodeUtf8(isFirst ? '[]' : ']'));
      return running.hex();
    },
  };
}

/** Returns the text whose SHA-256 is in `UpdateParts.sha256`. */
export function updatesDigestText(updates: readonly StoredRefUpdate[]): string {
  return canonicalJson(updates);
}
