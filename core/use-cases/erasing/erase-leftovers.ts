/**
 * The policy that goes through each erasure a second time, when no request from before it can still be under way: a
 * push may have stored its layer after the erasure removed those, a delivery its answer, a sign-in its session.
 *
 * Invariants: the policy passes `AccountErased` events in the order of the log, each only after the second pass, so the
 * mark is all that it must remember. Any number of nodes may run it.
 */
import { accounts } from '../../account/evolve.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, uuid } from '../../kernel/ids.ts';
import { type PassingContext, passEvents } from '../../runtime/pass-events.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { type ErasureContext, finishErasure } from './erase-account.ts';

/**
 * An erasure is gone through again after this time, which is longer than a push may take to append: what requests under
 * way stored after it is removed then. Internal: it is the pace of background work.
 */
export const ERASURE_REPEATED_AFTER_MS = 2 * 60 * 60_000;

export type LeftoversContext = ErasureContext & Pick<PassingContext, 'marks'>;

const POLICY = 'erasure-leftovers';

/**
 * Reads the log from where it stopped, up to the first erasure that is too young. Rejects if the log, the marks, the
 * vault or the platform's store cannot be reached. Resolves early when the signal is aborted.
 */
export async function eraseLeftovers(context: LeftoversContext, signal: { readonly aborted: boolean }): Promise<void> {
  await passEvents(context, POLICY, (recorded) => pass(context, recorded), signal);
}

/** Resolves false if requests from before the erasure may still be under way. */
async function pass(context: LeftoversContext, recorded: RecordedEvent): Promise<boolean> {
  if (recorded.type !== 'AccountErased' || categoryOf(recorded.stream) !== accounts.category) return true;
  if (context.clock.now() < plusMs(recorded.occurredAt, ERASURE_REPEATED_AFTER_MS)) return false;
  const account = uuid<AccountId>(entityIdOf(recorded.stream));
  await finishErasure(context, systemCause(context.ids, POLICY, recorded.id), account);
  return true;
}
