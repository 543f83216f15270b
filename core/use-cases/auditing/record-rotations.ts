/**
 * Records in an account's log which rotations of the master key wrapped its data key again, before the log is signed.
 *
 * Invariants: each rotation is one event in the log, whichever node records it: the stream is read after the revision
 * that the append expects. An account that was erased has no data key, and gets no event. While a program runs that
 * does not know the event, nothing is recorded, and signing goes on.
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { accept } from '../../kernel/decider.ts';
import { type LogPosition, streamName } from '../../kernel/envelope.ts';
import type { AccountId, Uuid } from '../../kernel/ids.ts';
import { type AccountLogReader, EVERY_ENTRY } from '../../ports/account-log.ts';
import { readPlaces } from '../../ports/event-store.ts';
import type { MasterKeyRotations } from '../../ports/master-key-rotations.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { isInAccountLog } from '../accounts/is-in-account-log.ts';

export interface RotationsContext extends Context {
  readonly rotations: MasterKeyRotations;
  readonly readModels: Pick<AccountLogReader, 'logPrefix' | 'entryPlaces'>;
}

const TYPE = 'MasterKeyRotated';
/** The words of the command, as events of other commands name theirs. */
const COMMAND = 'master-key rotate';
/** Rotations that an account can have in its log. Internal: each takes a command of the operator. */
const ROTATIONS_READ_MAX = 1_000;

/**
 * Returns a position that a reader must wait for to see what was recorded; null if there was nothing to record. The
 * caller has waited for the account's log.
 */
export async function recordRotations(context: RotationsContext, account: AccountId): Promise<LogPosition | null> {
  const rotated = await context.rotations.rotationsOf(account);
  if (rotated.length === 0) return null;
  const known = await recordedRotations(context, account);
  const unknown = rotated.filter((keyId) => !known.has(keyId));
  if (unknown.length === 0) return null;
  const cause = {
    actor: { kind: 'admin', id: COMMAND } as const,
    requestId: context.ids.next<Uuid>(),
    sourceAddressRef: null,
    causationId: null,
  };
  let missing: readonly string[] = unknown;
  const guarding = async () => {
    const left: string[] = [];
    for (const keyId of unknown) {
      const isThere = await isInAccountLog(context, account, { type: TYPE, members: { key_id: keyId } });
      if (!isThere) left.push(keyId);
    }
    missing = left;
    return { guards: [] };
  };
  const executed = await execute(context, accounts, account, { account, cause, guarding }, (state) =>
    accept(...missing.flatMap((keyId) => eventsOf(decideAccount(state, { type: 'RecordMasterKeyRotation', keyId })))),
  );
  // Refused while the type is not written yet: a later signing records it.
  return 'refused' in executed ? null : context.events.head();
}

function eventsOf(decision: ReturnType<typeof decideAccount>) {
  return 'events' in decision ? decision.events : [];
}

async function recordedRotations(
  { events, readModels }: RotationsContext,
  account: AccountId,
): Promise<ReadonlySet<unknown>> {
  const { size } = await readModels.logPrefix(account, null);
  const places = await readModels.entryPlaces(
    account,
    { ...EVERY_ENTRY, type: TYPE, stream: streamName(accounts.category, account) },
    { from: 0, to: size, limit: ROTATIONS_READ_MAX },
  );
  return new Set((await readPlaces(events, places)).map(({ data }) => data['key_id']));
}
