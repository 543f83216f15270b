/**
 * When the first attempts of deliveries may be made, by the budget of the account's plan.
 *
 * Must stay true: of each account no more deliveries begin in an hour than its plan allows, pings and redeliveries
 * included, where one of a long payload counts as several. What is over that begins in the next hour with room, spread over
 * it, so that nobody else's attempts wait for thousands that fall due at once. The time is decided once, and stands in the
 * delivery's event.
 */
import { accounts } from '../../account/evolve.ts';
import type { Plans } from '../../account/plans.ts';
import { type AccountId, plusMs, type Timestamp, timestamp } from '../../kernel/ids.ts';
import { WEBHOOK_BUDGET_GROUP, WEBHOOK_BUDGET_HOURS_MAX, WEBHOOK_BUDGET_PAYLOAD_BYTES } from '../../kernel/limits.ts';
import type { BudgetPart, WebhookBudgets } from '../../ports/webhook-budgets.ts';
import type { Context } from '../../runtime/execute.ts';

export interface BudgetContext extends Pick<Context, 'entities' | 'clock'> {
  readonly plans: Plans;
  readonly budgets: WebhookBudgets;
}

/** The time of a delivery's first attempt; null: at once. */
export type NotBefore = Timestamp | null;

const HOUR_MS = 60 * 60_000;

/** Returns the start of the hour. */
export function hourOf(at: Timestamp): Timestamp {
  return timestamp(`${at.slice(0, 13)}:00:00.000Z`);
}

/** First attempts of one payload, which takes so many bytes. */
export interface WantedAttempts {
  readonly count: number;
  readonly payloadBytes: number;
}

/**
 * Takes the times of first attempts, in order; null if the next `WEBHOOK_BUDGET_HOURS_MAX` hours have too little room. Those
 * of a payload count once more for each `WEBHOOK_BUDGET_PAYLOAD_BYTES`, since payloads are stored for the retention, but
 * together no more than an hour has. Deliveries that are not requested after that leave their part of the budget unused.
 */
export async function takeBudget(
  { entities, clock, plans, budgets }: BudgetContext,
  account: AccountId,
  { count, payloadBytes }: WantedAttempts,
): Promise<readonly NotBefore[] | null> {
  const { state } = await entities.get(accounts, account);
  // The attempts of an account that is closed send nothing.
  const perHour = state.status === 'open' ? plans[state.plan].deliveries_per_hour : null;
  if (perHour === null) return Array.from({ length: count }, () => null);
  const current = hourOf(clock.now());
  const hours = Array.from({ length: WEBHOOK_BUDGET_HOURS_MAX }, (_, index) => plusMs(current, index * HOUR_MS));
  const weighed = count * (1 + Math.floor(payloadBytes / WEBHOOK_BUDGET_PAYLOAD_BYTES));
  const taken = Math.max(count, Math.min(weighed, perHour));
  const parts = await budgets.take(account, { hours, count: taken, perHour });
  const times = parts?.flatMap((part) => timesOf(part, current, perHour));
  if (times === undefined) return null;
  // Each begins with the last part of what it takes.
  return Array.from({ length: count }, (_, at) => times[Math.ceil(((at + 1) * taken) / count) - 1] ?? null);
}

function timesOf({ hour, first, count }: BudgetPart, current: Timestamp, perHour: number): readonly NotBefore[] {
  const groupMs = (HOUR_MS * WEBHOOK_BUDGET_GROUP) / perHour;
  return Array.from({ length: count }, (_, index) => {
    if (hour === current) return null;
    return plusMs(hour, Math.floor(Math.floor((first + index) / WEBHOOK_BUDGET_GROUP) * groupMs));
  });
}
