/**
 * When the first attempts of deliveries may be made, by the budget of the account's plan.
 *
 * Invariants: of each account no more deliveries begin in an hour than its plan allows, pings and redeliveries
 * included, where one of a long payload counts as several. A ping or redelivery beyond that takes its time from a later
 * hour when it is requested, and the time stands in its event. Deliveries of pushes take from the current hour alone,
 * and those that waited for it are spread over it, so that nobody else's attempts wait for thousands that fall due
 * together.
 */
import { accounts } from '../../account/evolve.ts';
import type { Plans } from '../../account/plans.ts';
import { KIB } from '../../kernel/byte-units.ts';
import { type AccountId, msBetween, plusMs, type Timestamp, timestamp } from '../../kernel/ids.ts';
import { WEBHOOK_BUDGET_HOURS_MAX } from '../../kernel/limits.ts';
import type { WebhookBudgets } from '../../ports/webhook-budgets.ts';
import type { Context } from '../../runtime/execute.ts';
import { WEBHOOK_BUDGET_GROUP } from './limits.ts';

/** A first attempt counts once more for each time this length of its payload. */
export const WEBHOOK_BUDGET_PAYLOAD_BYTES = 8 * KIB;

export interface BudgetContext extends Pick<Context, 'entities' | 'clock'> {
  readonly plans: Plans;
  readonly budgets: WebhookBudgets;
}

/** The time of a delivery's first attempt; null: immediately. */
export type NotBefore = Timestamp | null;

const HOUR_MS = 60 * 60_000;

/** Returns the start of the hour. */
export function hourOf(at: Timestamp): Timestamp {
  return timestamp(`${at.slice(0, 13)}:00:00.000Z`);
}

/**
 * Takes the time of the first attempt of a ping or a redelivery; `no-room` if the next `WEBHOOK_BUDGET_HOURS_MAX` hours
 * have none.
 */
export async function takeTime(context: BudgetContext, account: AccountId): Promise<NotBefore | 'no-room'> {
  const perHour = await perHourOf(context, account);
  // The attempts of an account that is closed send nothing.
  if (perHour === null || perHour === 'closed') return null;
  const current = hourOf(context.clock.now());
  const hours = Array.from({ length: WEBHOOK_BUDGET_HOURS_MAX }, (_, index) => plusMs(current, index * HOUR_MS));
  const parts = await context.budgets.take(account, { hours, count: 1, perHour });
  if (parts === null) return 'no-room';
  const [part] = parts;
  if (part === undefined || part.hour === current) return null;
  return slotTime({ hour: part.hour, perHour, taken: part.first }, 0);
}

/** First attempts of one payload, which takes this many bytes. */
export interface WantedAttempts {
  readonly count: number;
  readonly payloadBytes: number;
}

/**
 * Takes from the current hour what first attempts of one payload need, and returns how many of them may begin now.
 * Those that waited for the hour get only what is due of it by now. Each counts once more for each
 * `WEBHOOK_BUDGET_PAYLOAD_BYTES` of the payload, since payloads are stored for the retention, but together they count
 * no more than an hour has. Deliveries that are not requested after that leave their part of the budget unused.
 */
export async function takeNow(
  context: BudgetContext,
  account: AccountId,
  { count, payloadBytes }: WantedAttempts,
  waited: boolean,
): Promise<number> {
  const perHour = await perHourOf(context, account);
  if (perHour === 'closed') return 0;
  if (perHour === null) return count;
  const now = context.clock.now();
  const hour = hourOf(now);
  const groupsDue = 1 + Math.floor(msBetween(hour, now) / groupSpanMs(perHour));
  const due = waited ? Math.min(perHour, groupsDue * WEBHOOK_BUDGET_GROUP) : perHour;
  const weight = 1 + Math.floor(payloadBytes / WEBHOOK_BUDGET_PAYLOAD_BYTES);
  const take = async (some: number): Promise<boolean> => {
    const taken = Math.max(some, Math.min(some * weight, perHour));
    return (await context.budgets.take(account, { hours: [hour], count: taken, perHour: due })) !== null;
  };
  if (await take(count)) return count;
  let taken = 0;
  while (taken < count && (await take(1))) taken += 1;
  return taken;
}

/** How an account's hours are divided at present. */
export interface Pace {
  readonly hour: Timestamp;
  readonly perHour: number;
  /** What was taken of this hour; `perHour` at most. */
  readonly taken: number;
}

/** Returns null if the plan of the account does not bound its deliveries; `closed` if the account sends nothing now. */
export async function paceOf(context: BudgetContext, account: AccountId): Promise<Pace | null | 'closed'> {
  const perHour = await perHourOf(context, account);
  if (perHour === null || perHour === 'closed') return perHour;
  const hour = hourOf(context.clock.now());
  // A plan may have become smaller since.
  return { hour, perHour, taken: Math.min(perHour, await context.budgets.taken(account, hour)) };
}

/** Returns when a delivery begins that waits behind this many others: hours are divided into groups, spread evenly. */
export function slotTime({ hour, perHour, taken }: Pace, ahead: number): Timestamp {
  const slot = taken + ahead;
  const group = Math.floor((slot % perHour) / WEBHOOK_BUDGET_GROUP);
  return plusMs(hour, Math.floor(slot / perHour) * HOUR_MS + Math.floor(group * groupSpanMs(perHour)));
}

function groupSpanMs(perHour: number): number {
  return (HOUR_MS * WEBHOOK_BUDGET_GROUP) / perHour;
}

async function perHourOf(
  { entities, plans }: Pick<BudgetContext, 'entities' | 'plans'>,
  account: AccountId,
): Promise<number | null | 'closed'> {
  const { state } = await entities.get(accounts, account);
  return state.status === 'open' ? plans[state.plan].deliveries_per_hour : 'closed';
}
