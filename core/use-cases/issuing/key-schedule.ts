/**
 * When each set of signing keys signs, is public, and is due for replacement.
 *
 * Invariants: a set is public before it signs for longer than anybody may keep older public keys, unless it is the
 * only one; and after it signed until its last token has ended and every copy of the keys that lacks the next set has.
 */
import { later, msBetween, plusMs, type Timestamp } from '../../kernel/ids.ts';
import type { SigningKeySet } from '../../ports/signing-keys.ts';

/** How long a set of keys signs before the next one does. Internal: it is the schedule of keys. */
export const SIGNING_KEYS_SPAN_MS = 90 * 86_400_000;
/**
 * How long a set of keys is public before it signs, if it takes over on the schedule. Internal: it is the schedule of
 * keys.
 */
export const SIGNING_KEYS_LEAD_MS = 86_400_000;
/**
 * How long a set of keys stays public after it signed: its last token ends, every copy of the keys, and clocks differ.
 * Internal: it is the schedule of keys.
 */
export const SIGNING_KEYS_OVERLAP_MS = 15 * 60_000;

/** The sets of a service, the lowest generation first. */
type Sets = readonly SigningKeySet[];

/** Returns the set that signs now; null if there is none. */
export function signingSet(sets: Sets, now: Timestamp): SigningKeySet | null {
  // The first set signs before its time too: where clocks differ, there is no other.
  return sets.findLast(({ signsFrom }) => signsFrom <= now) ?? sets[0] ?? null;
}

/** Returns the sets that must be public now. The others are never needed again. */
export function publicSets(sets: Sets, now: Timestamp): Sets {
  const first = sets.findLastIndex(({ signsFrom }) => plusMs(signsFrom, SIGNING_KEYS_OVERLAP_MS) <= now);
  return sets.slice(Math.max(first, 0));
}

/** Returns from when on a new set must sign, if the schedule asks for one now; else null. */
export function dueFrom(sets: Sets, now: Timestamp): Timestamp | null {
  const newest = sets.at(-1);
  if (newest === undefined) return now;
  const end = plusMs(newest.signsFrom, SIGNING_KEYS_SPAN_MS);
  if (msBetween(now, end) > SIGNING_KEYS_LEAD_MS) return null;
  return later(end, plusMs(now, SIGNING_KEYS_LEAD_MS));
}
