/**
 * The keys that sign checkpoints, as one node knows them.
 *
 * Invariants: the first key fixes the name of every later one, so that the origin of an account's checkpoints never
 * changes, whatever address the service gets. A node never signs with a key that it has only made and not read back,
 * since another node may have won. A key that another node added signs here within a minute.
 */
import { msBetween, type Timestamp } from '../../kernel/ids.ts';
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

/** Returns all keys, the oldest first, at least one. */
export type LogKeyRing = () => Promise<readonly [LogKey, ...LogKey[]]>;

export function createLogKeyRing(context: LogKeysContext & { readonly clock: Clock }): LogKeyRing {
  let known: { readonly at: Timestamp; readonly keys: readonly [LogKey, ...LogKey[]] } | null = null;
  const read = shareRead(async () => {
    const keys = await readOrMake(context);
    known = { at: context.clock.now(), keys };
    return keys;
  });
  return async () => {
    if (known !== null && msBetween(known.at, context.clock.now()) < LOG_KEYS_READ_INTERVAL_MS) return known.keys;
    return read();
  };
}

async function readOrMake(context: LogKeysContext): Promise<readonly [LogKey, ...LogKey[]]> {
  const { logKeys, signing, host } = context;
  const [first, ...rest] = await logKeys.list();
  if (first !== undefined) return [first, ...rest];
  await logKeys.add({ generation: 1, name: host(), ...signing.newKey() });
  const [made, ...others] = await logKeys.list();
  if (made === undefined) throw new LogKeysError('log-keys-unavailable', 'A log key that was added is not there');
  return [made, ...others];
}

/** Adds a key, which signs from now on. Returns it, or null if somebody else added one at the same moment. */
export async function rotateLogKey(context: LogKeysContext): Promise<LogKey | null> {
  const keys = await readOrMake(context);
  const [{ name }] = keys;
  const added = { generation: (keys.at(-1)?.generation ?? 0) + 1, name, ...context.signing.newKey() };
  return (await context.logKeys.add(added)) ? added : null;
}
