/**
 * Replaces the signing keys before their time, as an operator asks. Commit point: `store.add` in
 * create-signing-keys.ts.
 *
 * Invariants: keys are destroyed only after the set that replaces them is kept. The number of public sets is bounded.
 */
import { plusMs } from '../../kernel/ids.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SigningKeySet, SigningKeys, TokenSigning } from '../../ports/signing-keys.ts';
import { addSet } from './create-signing-keys.ts';
import { publicSets } from './key-schedule.ts';

/**
 * How long a set of keys is public before it signs, for those who keep keys longer than they may, if the keys are
 * rotated immediately. Internal: it is the schedule of keys.
 */
export const SIGNING_KEYS_SHORT_LEAD_MS = 10 * 60_000;
/** Sets of keys that are public at the same time; each takes about 700 bytes of the answer. */
export const SIGNING_KEY_SETS_MAX = 6;

export interface RotationContext {
  readonly store: SigningKeys;
  readonly signing: TokenSigning;
  readonly clock: Clock;
}

/** `raced`: somebody else rotated at the same moment. */
export type Rotation =
  | { readonly added: SigningKeySet; readonly revoked: number }
  | { readonly failed: 'too-many-sets' | 'raced' };

/**
 * Adds a set that signs as soon as copies of the public keys can hold it. With `revoke`, for keys that somebody may
 * know, it signs now and every older set is destroyed, though tokens may fail until clouds read the public keys again.
 */
export async function rotateSigningKeys(
  context: RotationContext,
  { revoke }: { readonly revoke: boolean },
): Promise<Rotation> {
  const { store, clock } = context;
  const sets = await store.list();
  const now = clock.now();
  if (!revoke && publicSets(sets, now).length >= SIGNING_KEY_SETS_MAX) return { failed: 'too-many-sets' };
  const isFirst = sets.length === 0;
  const added = await addSet(context, sets, revoke || isFirst ? now : plusMs(now, SIGNING_KEYS_SHORT_LEAD_MS));
  if (added === null) return { failed: 'raced' };
  if (revoke) await store.removeBelow(added.generation);
  return { added, revoked: revoke ? sets.length : 0 };
}
