/**
 * Which key signs a log: entries of type `LogKeyEndorsed` name the next one, and the key before signs that.
 *
 * Invariants: a key is trusted because it was given, or because a trusted key endorsed it, and no key after another one
 * replaced it. A checkpoint is signed by the key in force after its entries, where the file shows which that is. What a
 * revoked key signed counts up to the size that is given with it. Memory grows with the endorsements.
 */
import { verify } from 'node:crypto';
import { canonicalText, isObject, type Json, type JsonObject } from './canonical.ts';
import { type Checkpoint, checkpointSigning, parseKey, type Signing, type VerifierKey } from './checkpoint.ts';

/** A stolen key, and how many entries the last checkpoint has that is surely not the thief's. */
export interface RevokedKey {
  readonly key: VerifierKey;
  readonly after: number;
}

interface KeyOptions {
  /** The keys that were given. */
  readonly named: readonly VerifierKey[];
  readonly revoked: RevokedKey | null;
  /** The key in force before the first entry, if that is known; it is trusted. */
  readonly inForce?: VerifierKey | null;
}

interface KeyInForce {
  readonly key: VerifierKey;
  readonly isTrusted: boolean;
}

/** The entries that a file shows: from the first up to but not including the last. */
interface Shown {
  readonly begin: number;
  readonly end: number;
}

export interface KeyChain {
  /** Takes the next entry. Returns what is wrong with it; null if nothing is. */
  add(entry: JsonObject, sequence: number): string | null;
  /** Says who signed a checkpoint, as far as the entries and the keys that were given tell. */
  signing(checkpoint: Checkpoint, shown: Shown): Signing;
  /** The key that the entries of the file put in force; null if they endorse none, and none was known before. */
  inForce(): KeyInForce | null;
  /** Whether the first endorsement's previous key is a given one; true without an endorsement. */
  isRooted(): boolean;
}

/** What the entries up to one endorsement say. */
interface State {
  /** The sequence of the endorsement; -1 of what was known before. */
  readonly sequence: number;
  readonly inForce: KeyInForce;
  /** The key before it; null of what was known before. */
  readonly previous: VerifierKey | null;
}

export function createKeyChain({ named, revoked, inForce = null }: KeyOptions): KeyChain {
  const given = new Set(named.map(({ line }) => line));
  if (revoked !== null) given.delete(revoked.key.line);
  const states: State[] = [];
  if (inForce !== null) states.push({ sequence: -1, inForce: { key: inForce, isTrusted: true }, previous: null });
  let isRooted = true;

  /** Whether the key is given, or the revoked one within what is before its end. */
  const isGiven = ({ line }: VerifierKey, size: number): boolean =>
    given.has(line) || (revoked !== null && revoked.key.line === line && size <= revoked.after);

  function endorse({ key, previous, signature }: Endorsement, sequence: number): string | null {
    const last = states.at(-1);
    if (last !== undefined && last.inForce.key.line !== previous.line) {
      return `${previous.line} endorses a key, and is not the key in force: that is ${last.inForce.key.line}`;
    }
    const isRevoked = revoked !== null && revoked.key.line === previous.line && sequence >= revoked.after;
    if (isRevoked && signature !== null) return `${previous.line} endorses a key, and was revoked before`;
    const text = canonicalText({ key: key.line, previous: previous.line });
    const isSigned = signature !== null && previous.key !== null;
    if (isSigned && !verify(null, Buffer.from(text), previous.key, signature)) {
      return `the endorsement of ${key.line} is not signed by ${previous.line}`;
    }
    // An entry is of what the first `sequence + 1` entries say.
    const isPreviousTrusted = last === undefined ? isGiven(previous, sequence + 1) : last.inForce.isTrusted;
    // A revoked key that was the first one is named by --revoke, and its end by the checkpoint that was kept.
    if (last === undefined) isRooted = given.has(previous.line) || revoked?.key.line === previous.line;
    const isTrusted = isGiven(key, sequence + 1) || (isSigned && isPreviousTrusted);
    states.push({ sequence, inForce: { key, isTrusted }, previous });
    return null;
  }

  return {
    add({ type, stream, data }, sequence) {
      if (type !== 'LogKeyEndorsed' || typeof stream !== 'string' || !stream.startsWith('account-')) return null;
      const endorsement = endorsementOf(data);
      return endorsement === null ? 'its data are no endorsement of a key' : endorse(endorsement, sequence);
    },
    inForce: () => states.at(-1)?.inForce ?? null,
    isRooted: () => isRooted,
    signing(checkpoint, { begin, end }) {
      const { size } = checkpoint;
      const state = size < begin ? undefined : states.findLast(({ sequence }) => sequence < size);
      const replaced = replacedAt(states, state);
      const seen = state === undefined ? [] : [state.inForce.key, ...replaced.values()];
      const known = new Map(
        [...named, ...(revoked === null ? [] : [revoked.key]), ...seen].map((key) => [key.line, key]),
      );
      const signing = checkpointSigning(checkpoint, [...known.values()]);
      if (signing.state !== 'signed') return signing;
      const signers = new Set(signing.signers.map(({ line }) => line));
      if (revoked !== null && size > revoked.after && signers.has(revoked.key.line)) {
        return { state: 'wrong', why: `${revoked.key.line} signed it, and was revoked after ${revoked.after} entries` };
      }
      const isInForce = state !== undefined && signers.has(state.inForce.key.line);
      if (isInForce && state.inForce.isTrusted) return signing;
      // Behind the entries of a slice others may have been endorsed.
      if (state !== undefined && size <= end && !isInForce) {
        return { state: 'wrong', why: `the key in force is ${state.inForce.key.line}, which did not sign it` };
      }
      const isNamed = signing.signers.some((key) => isGiven(key, size) && !replaced.has(key.line));
      if (isNamed) return signing;
      const old = signing.signers.find(({ line }) => replaced.has(line));
      if (old !== undefined) return { state: 'wrong', why: `${old.line} signed it, and was replaced before` };
      return { state: 'unknown', why: 'no key that was given endorses the one that signed it' };
    },
  };
}

/** Returns the keys that others have replaced up to this state, by their lines. */
function replacedAt(states: readonly State[], last: State | undefined): ReadonlyMap<string, VerifierKey> {
  const replaced = new Map<string, VerifierKey>();
  if (last === undefined) return replaced;
  for (const { sequence, previous } of states) {
    if (sequence <= last.sequence && previous !== null) replaced.set(previous.line, previous);
  }
  replaced.delete(last.inForce.key.line);
  return replaced;
}

interface Endorsement {
  readonly key: VerifierKey;
  readonly previous: VerifierKey;
  /** Null where a key was revoked. */
  readonly signature: Buffer | null;
}

function endorsementOf(data: Json | undefined): Endorsement | null {
  if (!isObject(data) || Object.keys(data).toSorted().join() !== 'key,previous,signature') return null;
  const { key, previous, signature } = data;
  const [one, other] = [keyOf(key), keyOf(previous)];
  if (one === null || other === null || signature === undefined) return null;
  if (signature !== null && typeof signature !== 'string') return null;
  const bytes = signature === null ? null : Buffer.from(signature, 'base64');
  if (bytes !== null && bytes.toString('base64') !== signature) return null;
  return { key: one, previous: other, signature: bytes };
}

function keyOf(value: Json | undefined): VerifierKey | null {
  return typeof value === 'string' ? parseKey(value) : null;
}
