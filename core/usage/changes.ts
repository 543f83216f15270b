/**
 * The changes of an account within a month, which its plan bounds because their record is never removed.
 *
 * Invariants: a change is a request or a push that appended to the account's record, and counts once however many
 * events and streams that took. The log alone says which it was, so every node counts the same, and so does a rebuild.
 * What `strata-admin` and the service's own policies append is no change.
 */
import type { Plan, Plans } from '../account/plans.ts';
import { daysInMonth } from '../kernel/calendar.ts';
import type { RecordedEvent } from '../kernel/envelope.ts';
import { type AccountId, msBetween, type Timestamp, timestamp } from '../kernel/ids.ts';
import type { Clock } from '../ports/clock.ts';
import type { ChangesReader } from '../ports/usage.ts';

/**
 * Of a plan's changes of a month: what tokens leave to the person; and how far beyond them pushes go that only delete
 * refs, since a leaked branch must be deleted before it can be purged.
 */
export const CHANGES_KEPT_FOR_PERSON = 1_000;
export const CHANGES_BEYOND_QUOTA_FOR_REF_DELETIONS = 1_000;

/** Returns whether an event is of a change of the account that it names. */
export function isOfChange({ isRecord, accountId, actor, type }: RecordedEvent): boolean {
  if (!isRecord || accountId === null) return false;
  switch (actor.kind) {
    case 'token':
    case 'user':
    case 'trust_rule':
      return true;
    case 'admin':
      return false;
    case 'system':
      // Requests of whom no credential identifies. The workflow of a device login has the same name, and claims none.
      return actor.id === 'sign-up' || (actor.id === 'device-login' && type === 'DeviceLoginClaimed');
  }
}

/** Who asks for a change. A push that only deletes refs is one of a token, and is let through when others are not. */
export type ChangeBy = 'token' | 'person' | 'ref-deletion';

export interface ChangesContext {
  readonly plans: Plans;
  readonly changes: ChangesReader;
  readonly clock: Pick<Clock, 'now'>;
}

/**
 * Returns the seconds until the next month (UTC), 1 or more, if the plan's changes of this one are used up for whom
 * asks; null if there is room. It sees what the model has counted, which is some ten milliseconds behind the log; what
 * is under way is not counted yet.
 */
export async function waitForChange(
  { plans, changes, clock }: ChangesContext,
  { id, plan }: { readonly id: AccountId; readonly plan: Plan },
  by: ChangeBy,
): Promise<number | null> {
  const quota = plans[plan].changes_per_month;
  if (quota === null || (await changes.changesOf(id)) < roomOf(quota, by)) return null;
  return secondsLeftInMonth(clock.now());
}

const DAY_MS = 24 * 60 * 60_000;

function roomOf(quota: number, by: ChangeBy): number {
  switch (by) {
    case 'token':
      return Math.max(0, quota - CHANGES_KEPT_FOR_PERSON);
    case 'person':
      return quota;
    case 'ref-deletion':
      return quota + CHANGES_BEYOND_QUOTA_FOR_REF_DELETIONS;
  }
}

function secondsLeftInMonth(now: Timestamp): number {
  const lengthMs = daysInMonth(Number(now.slice(0, 4)), Number(now.slice(5, 7))) * DAY_MS;
  const passedMs = msBetween(timestamp(`${now.slice(0, 7)}-01T00:00:00.000Z`), now);
  return Math.ceil((lengthMs - passedMs) / 1_000);
}
