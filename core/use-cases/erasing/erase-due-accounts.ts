/**
 * The policy that erases closed accounts when their time to be reopened is over.
 *
 * Invariants: an account that was reopened is not erased, however late the policy runs: `AccountErased` is decided
 * on the account's own stream. The policy passes `AccountClosed` events in the order of the log, each only after the
 * account was erased or reopened, so the mark is all that it must remember. Any number of nodes may sweep.
 */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, timestamp, uuid } from '../../kernel/ids.ts';
import type { Log } from '../../ports/log.ts';
import { type PassingContext, passEvents } from '../../runtime/pass-events.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { type ErasureContext, eraseDueAccount } from './erase-account.ts';

export type DueAccountsContext = ErasureContext & PassingContext & { readonly log: Log };

const POLICY = 'account-erasure';

/**
 * Erases the accounts that are due. All have the same time, so the first closing that is not due yet ends the sweep.
 * Rejects if the log, the marks or the vault cannot be reached. Resolves early when the signal is aborted.
 */
export async function eraseDueAccounts(
  context: DueAccountsContext,
  signal: { readonly aborted: boolean },
): Promise<void> {
  await passEvents(context, POLICY, (recorded) => pass(context, recorded), signal);
}

/** Resolves false if the account of the event can still be reopened. */
async function pass(context: DueAccountsContext, recorded: RecordedEvent): Promise<boolean> {
  if (recorded.type !== 'AccountClosed' || categoryOf(recorded.stream) !== accounts.category) return true;
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (event.type !== 'AccountClosed') return true;
  if (context.clock.now() < timestamp(event.data.erase_at)) return false;
  const account = uuid<AccountId>(entityIdOf(recorded.stream));
  const cause = systemCause(context.ids, POLICY, recorded.id);
  const erased = await eraseDueAccount(context, cause, account);
  // The account was reopened. If it was closed again, a later event says until when.
  if ('refused' in erased) return true;
  if (!erased.addressReleased) context.log.warn({ account }, 'An erased account keeps the claim of its address');
  return true;
}
