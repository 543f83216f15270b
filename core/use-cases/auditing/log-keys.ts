/**
 * The keys that sign checkpoints, as one node knows them.
 *
 * Invariants: the first key fixes the name of every later one, so that the origin of an account's checkpoints never
 * changes, whatever address the service gets. A node never signs with a key that it has only made and not read back,
 * since another node may have won. A key that another node added signs here within a minute. A key that was revoked
 * signs nothing from then on, no endorsement either.
 */
import { base64OfHex } from '../../audit/base64.ts';
import { verifierKeyText } from '../../audit/checkpoint.ts';
import type { Digest } from '../../kernel/digest.ts';
import { msBetween, type Timestamp } from '../../kernel/ids.ts';
import { canonicalJson } from '../../kernel/json.ts';
import { shareRead } from '../../kernel/shared-read.ts';
import type { Clock } from '../../ports/clock.ts';
import { type LogKey, type LogKeys, LogKeysError, type NoteSigning } from '../../ports/log-keys.ts';

/** How old a node's knowledge of the keys of checkpoints may be. Internal: it is the schedule of keys. */
export const LOG_KEYS_READ_INTERVAL_MS = 60_000;

export interface LogKeysContext {
  readonly logKeys: LogKeys;
  readonly signing: NoteSigning;
  /** The host of the base URL, with its port unless that is the scheme's own: the name of the first key. */
  readonly host: () => string;
}

/** Returns all keys, the oldest first, at least one; those that are kept now if `isFresh`. */
export type LogKeyRing = (isFresh?: boolean) => Promise<readonly [LogKey, ...LogKey[]]>;

export function createLogKeyRing(context: LogKeysContext & { readonly clock: Clock }): LogKeyRing {
  let known: { readonly at: Timestamp; readonly keys: readonly [LogKey, ...LogKey[]] } | null = null;
  const read = shareRead(async () => {
    const keys = await readOrMake(context);
    known = { at: context.clock.now(), keys };
    return keys;
  });
  return async (isFresh = false) => {
    if (!isFresh && known !== null && msBetween(known.at, context.clock.now()) < LOG_KEYS_READ_INTERVAL_MS)
      return known.keys;
    return read();
  };
}

async function readOrMake(context: LogKeysContext): Promise<readonly [LogKey, ...LogKey[]]> {
  const { logKeys, signing, host } = context;
  const [first, ...rest] = await logKeys.list();
  if (first !== undefined) return [first, ...rest];
  await logKeys.add({ generation: 1, name: host(), revokes: null, ...signing.newKey() });
  const [made, ...others] = await logKeys.list();
  if (made === undefined) throw new LogKeysError('log-keys-unavailable', 'A log key that was added is not there');
  return [made, ...others];
}

/** Adds a key, which signs from now on. Returns it, or null if somebody else added one at the same moment. */
export async function rotateLogKey(context: LogKeysContext): Promise<LogKey | null> {
  return addKey(context, await readOrMake(context), null);
}

/**
 * Revokes the key of this line, and adds one in its place. Returns what was added, or why nothing was: `unknown-key`,
 * `already-revoked`, or `lost-race` if somebody else added a key at the same moment.
 */
export async function revokeLogKey(
  context: LogKeysContext & { readonly digest: Digest },
  line: string,
): Promise<LogKey | 'unknown-key' | 'already-revoked' | 'lost-race'> {
  const keys = await readOrMake(context);
  const stolen = keys.find((key) => verifierKeyText(context.digest, key) === line);
  if (stolen === undefined) return 'unknown-key';
  if (isRevoked(stolen, keys)) return 'already-revoked';
  return (await addKey(context, keys, stolen.generation)) ?? 'lost-race';
}

async function addKey(
  { logKeys, signing }: LogKeysContext,
  keys: readonly [LogKey, ...LogKey[]],
  revokes: number | null,
): Promise<LogKey | null> {
  const [{ name }] = keys;
  const added = { generation: (keys.at(-1)?.generation ?? 0) + 1, name, revokes, ...signing.newKey() };
  return (await logKeys.add(added)) ? added : null;
}

export function isRevoked({ generation }: LogKey, keys: readonly LogKey[]): boolean {
  return keys.some(({ revokes }) => revokes === generation);
}

/** A key as verifiers know it. */
export interface ListedKey {
  readonly vkey: string;
  /** The line of the key before it; null of the first one. */
  readonly endorsedBy: string | null;
  /** In base64; null of the first key, of one that replaced a stolen key, and of one whose previous key was revoked. */
  readonly signature: string | null;
  readonly isRevoked: boolean;
  /** The generation that it was made to replace, as of `LogKey`. */
  readonly revokes: number | null;
}

/** Returns what is published of the keys, the oldest first. Ed25519 gives the same signature each time. */
export function listedKeys(
  { digest, signing }: { readonly digest: Digest; readonly signing: NoteSigning },
  keys: readonly LogKey[],
): readonly ListedKey[] {
  return keys.map((key, index) => {
    const previous = keys[index - 1];
    const vkey = verifierKeyText(digest, key);
    const ofKey = { vkey, isRevoked: isRevoked(key, keys), revokes: key.revokes };
    if (previous === undefined) return { ...ofKey, endorsedBy: null, signature: null };
    const endorsedBy = verifierKeyText(digest, previous);
    if (key.revokes !== null || isRevoked(previous, keys)) return { ...ofKey, endorsedBy, signature: null };
    const text = canonicalJson({ key: vkey, previous: endorsedBy });
    return { ...ofKey, endorsedBy, signature: base64OfHex(signing.sign(previous, text)) };
  });
}
