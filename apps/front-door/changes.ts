/**
 * Whether a caller may still make a change this month (core/usage/changes.ts).
 *
 * Invariants: no request asks it that deletes, revokes or purges, or that keeps an account its person's. So an account
 * that has used up its plan can still be made safe.
 */
import { accounts } from '../../core/account/evolve.ts';
import { type ChangeBy, waitForChange } from '../../core/usage/changes.ts';
import type { Principal } from '../../core/use-cases/callers/principal.ts';
import type { RateRefusal } from './callers.ts';
import type { FrontDoor } from './front-door.ts';

/** Refuses a change if the plan's changes of the month are used up for whom asks. */
export async function refusedChange(
  door: Pick<FrontDoor, 'entities' | 'plans' | 'changes' | 'clock' | 'callers'>,
  principal: Principal,
  by: ChangeBy = principal.kind === 'session' ? 'person' : 'token',
): Promise<RateRefusal | null> {
  const { state } = await door.entities.get(accounts, principal.account);
  if (state.status !== 'open') return null;
  const waitSeconds = await waitForChange(door, { id: principal.account, plan: state.plan }, by);
  if (waitSeconds === null) return null;
  return door.callers.refuse(principal, by === 'token' ? 'changes-of-tokens' : 'changes-of-month', waitSeconds);
}

/** Counts a push that is about to be decided, or refuses it. Pushes that only delete refs go further than others. */
export async function refusedPush(
  door: Parameters<typeof refusedChange>[0],
  principal: Principal,
  { refChanges, onlyDeletes }: { readonly refChanges: number; readonly onlyDeletes: boolean },
): Promise<RateRefusal | null> {
  const used = onlyDeletes
    ? await refusedChange(door, principal, 'ref-deletion')
    : await refusedChange(door, principal);
  return used ?? door.callers.record(principal, refChanges);
}
