/**
 * The signing keys of this service, as one node knows them: read again each minute, made when none are there, replaced
 * on a schedule by whichever node notices first.
 *
 * Invariants: a request costs no query but for one each minute, also while the database is down: known keys stay in
 * use then. A node never signs with a set that it has only made and not read back, since another node may have won.
 */
import type { Clock } from '../../ports/clock.ts';
import type { SigningKeySet, SigningKeys, TokenSigning } from '../../ports/signing-keys.ts';
import { addSet } from './create-signing-keys.ts';
import { dueFrom, publicSets } from './key-schedule.ts';

/** How old a node's knowledge of the sets of signing keys may be. Internal: it is the schedule of keys. */
export const SIGNING_KEYS_READ_INTERVAL_MS = 60_000;

export interface KeyRingOptions {
  readonly store: SigningKeys;
  readonly signing: TokenSigning;
  readonly clock: Clock;
  /** Told of a failed read while known keys stay in use. */
  readonly onFault: (what: string, cause: unknown) => void;
}

/** Returns the sets, the lowest generation first; at least one. */
export type KeyRing = () => Promise<readonly SigningKeySet[]>;

export function createKeyRing(options: KeyRingOptions): KeyRing {
  const { clock, onFault } = options;
  let known: readonly SigningKeySet[] = [];
  let readAgainAtMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | null = null;

  const read = async (): Promise<void> => {
    const startedMs = clock.monotonicMs();
    try {
      known = await maintainedSets(options);
    } catch (error) {
      if (known.length === 0) throw error;
      onFault('signing-keys', error);
    }
    readAgainAtMs = startedMs + SIGNING_KEYS_READ_INTERVAL_MS;
  };

  return async () => {
    if (clock.monotonicMs() >= readAgainAtMs) {
      reading ??= read().finally(() => {
        reading = null;
      });
      await reading;
    }
    return known;
  };
}

/** Reads the sets, adds one if the schedule asks for it, and destroys those that are never needed again. */
async function maintainedSets({ store, signing, clock }: KeyRingOptions): Promise<readonly SigningKeySet[]> {
  let sets = await store.list();
  const due = dueFrom(sets, clock.now());
  if (due !== null) {
    await addSet({ store, signing }, sets, due);
    sets = await store.list();
  }
  const needed = publicSets(sets, clock.now());
  const lowest = needed[0]?.generation;
  if (lowest !== undefined && needed.length < sets.length) await store.removeBelow(lowest);
  return needed;
}
