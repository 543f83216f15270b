/**
 * Records in an account's log which key signs it from then on, before the log is signed with that key.
 *
 * Invariants: the log endorses every key after the first one, in their order and once each, whichever node records it:
 * the stream is read after the revision that the append expects. The log of an erased account is signed, so it endorses
 * too. While a program runs that does not know the event, nothing is recorded, and the key before goes on signing.
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { accept } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import { type Actor, type Cause, type LogPosition, streamName } from '../../kernel/envelope.ts';
import type { AccountId, Uuid } from '../../kernel/ids.ts';
import { type AccountLogReader, EVERY_ENTRY } from '../../ports/account-log.ts';
import { type EventStore, readPlaces } from '../../ports/event-store.ts';
import type { NoteSigning } from '../../ports/log-keys.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { readForward } from '../../runtime/read-forward.ts';
import { type LogKeyRing, listedKeys } from './log-keys.ts';

interface EndorsedKeyContext {
  readonly events: Pick<EventStore, 'readStream' | 'readPositions'>;
  readonly readModels: Pick<AccountLogReader, 'entryPlaces'>;
}

interface EndorsementsContext extends Context {
  readonly readModels: Pick<AccountLogReader, 'logPrefix' | 'entryPlaces'>;
  readonly keys: LogKeyRing;
  readonly digest: Digest;
  readonly signing: NoteSigning;
}

const TYPE = 'LogKeyEndorsed';
const ROTATING: Actor = { kind: 'admin', id: 'log rotate-key' };
const REVOKING: Actor = { kind: 'admin', id: 'log revoke-key' };

/**
 * Returns the line of the key that the first `size` entries of a log endorsed last; null if they endorse none, so that
 * the first key is in force.
 */
export async function endorsedKey(
  { events, readModels }: EndorsedKeyContext,
  account: AccountId,
  size: number,
): Promise<string | null> {
  const filter = { ...EVERY_ENTRY, type: TYPE, stream: streamName(accounts.category, account) };
  const places = await readModels.entryPlaces(account, filter, { from: 0, to: size, limit: 1, newestFirst: true });
  const [last] = await readPlaces(events, places);
  return last === undefined ? null : lineOf(last.data['key']);
}

interface Endorsement {
  readonly key: string;
  readonly previous: string;
  readonly signature: string | null;
  /** The command that made the key, as events of other commands name theirs. */
  readonly actor: Actor;
}

/**
 * Returns a position that a reader must wait for to see what was recorded; null if there was nothing to record. The
 * caller has waited for the account's log.
 */
export async function recordEndorsements(
  context: EndorsementsContext,
  account: AccountId,
): Promise<LogPosition | null> {
  const all = endorsementsOf(context, await context.keys());
  // A service whose key was never rotated has nothing to look for.
  if (all.length === 0) return null;
  const { size } = await context.readModels.logPrefix(account, null);
  const last = await endorsedKey(context, account, size);
  // A key that this node does not know yet is newer than those that it knows.
  const known = all.findIndex(({ key }) => key === last);
  const missing = last === null ? all : known < 0 ? [] : all.slice(known + 1);
  let isRecorded = false;
  for (const endorsement of missing) {
    if (!(await recordEndorsement(context, account, endorsement))) break;
    isRecorded = true;
  }
  return isRecorded ? context.events.head() : null;
}

/** Returns false while the type is not written yet: a later signing records it. */
async function recordEndorsement(
  context: EndorsementsContext,
  account: AccountId,
  { actor, ...endorsement }: Endorsement,
): Promise<boolean> {
  const cause: Cause = {
    actor,
    requestId: context.ids.next<Uuid>(),
    sourceAddressRef: null,
    causationId: null,
  };
  let isThere = false;
  const guarding = async () => {
    isThere = await endorses(context, account, endorsement.key);
    return { guards: [] };
  };
  const executed = await execute(context, accounts, account, { account, cause, guarding }, (state) =>
    isThere ? accept() : decideAccount(state, { type: 'EndorseLogKey', ...endorsement }),
  );
  return !('refused' in executed);
}

/** Reads the whole stream. */
async function endorses({ events }: Pick<Context, 'events'>, account: AccountId, key: string): Promise<boolean> {
  for await (const event of readForward(events, streamName(accounts.category, account), 0)) {
    if (event.type === TYPE && event.data['key'] === key) return true;
  }
  return false;
}

function endorsementsOf(
  context: Pick<EndorsementsContext, 'digest' | 'signing'>,
  keys: Awaited<ReturnType<LogKeyRing>>,
): readonly Endorsement[] {
  return listedKeys(context, keys).flatMap(({ vkey: key, endorsedBy: previous, signature, revokes }) => {
    const actor: Actor = revokes === null ? ROTATING : REVOKING;
    return previous === null ? [] : [{ key, previous, signature, actor }];
  });
}

function lineOf(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('An endorsement without a key');
  return value;
}
