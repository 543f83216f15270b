/**
 * Lists the deliveries of webhooks, also those that are still to be made, with the payloads that were sent and the
 * answers that are still stored, and counts how the last ones of each webhook ended.
 */
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId, Timestamp, WebhookDeliveryId, WebhookId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AttemptId, DeliveryStore } from '../../ports/delivery-store.ts';
import type { DueDeliveries } from '../../ports/due-deliveries.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { Vault } from '../../ports/vault.ts';
import type { WaitingDeliveries } from '../../ports/waiting-deliveries.ts';
import type { WebhookDeliveryLists, WebhookDeliveryRow } from '../../ports/webhook-delivery-lists.ts';
import { findWaiting, listWaiting, type WaitingContext } from './postponed-deliveries.ts';
import { type FoundWebhook, findWebhook, listWebhooks, type WebhookViewer } from './webhooks.ts';

/** Deliveries of a webhook whose outcomes its health counts: the newest. */
export const WEBHOOK_HEALTH_DELIVERIES_MAX = 20;

export interface ListDeliveriesContext extends WaitingContext {
  readonly vault: Vault;
  readonly deliveries: Pick<DeliveryStore, 'answers' | 'payloads'>;
  readonly readModels: ReadModelProgress & WebhookDeliveryLists;
}

export interface WantedDeliveries {
  readonly viewer: WebhookViewer;
  readonly webhook: WebhookId;
  /** The list must include the log up to this position. */
  readonly seen: LogPosition;
  readonly limit: number;
  readonly withPayloads: boolean;
}

export interface DeliveryWithBodies {
  readonly delivery: WebhookDeliveryRow;
  /** Whether the delivery waits for its hour: its payload is still to be made. */
  readonly waits: boolean;
  /** The answer to the last attempt. Null if there is none, or if it is no longer stored. */
  readonly answer: Uint8Array | null;
  /** JSON. Null if it is no longer stored, still to be made, or was not requested. */
  readonly payload: string | null;
}

/** Lists the newest first. Refused with `webhook-not-found`, also for a webhook that the viewer may not see. */
export async function listWebhookDeliveries(
  context: ListDeliveriesContext,
  { viewer, webhook, seen, limit, withPayloads }: WantedDeliveries,
): Promise<readonly DeliveryWithBodies[] | { readonly refused: Refusal }> {
  const found = await findWebhook(context, viewer, webhook);
  if ('refused' in found) return found;
  const rows = await newestDeliveries(context, { account: viewer.account, webhook, seen, limit });
  const answers = await context.deliveries.answers(rows.flatMap(lastAttempt));
  const payloads = withPayloads ? await context.deliveries.payloads(rows.map(({ eventId }) => eventId)) : null;
  return rows.map(({ waits, ...delivery }) => ({
    delivery,
    waits,
    answer: answers.get(delivery.id) ?? null,
    // Another webhook may have been told of the same event before.
    payload: waits ? null : (payloads?.get(delivery.eventId) ?? null),
  }));
}

interface Newest extends Pick<WantedDeliveries, 'webhook' | 'seen' | 'limit'> {
  readonly account: AccountId;
}

type ListedRow = WebhookDeliveryRow & Pick<DeliveryWithBodies, 'waits'>;

/**
 * Returns a webhook's newest deliveries, those that are still to be made among them. These belong to later pushes than
 * all that were made, so only a ping is newer, by its time.
 */
async function newestDeliveries(
  context: ListDeliveriesContext,
  { account, webhook, seen, limit }: Newest,
): Promise<readonly ListedRow[]> {
  // Read first: a delivery that is made between the two reads is found in one list or in both.
  const waiting = await listWaiting(context, account, webhook, limit);
  await context.readModels.caughtUp(seen);
  const made = await context.readModels.webhookDeliveries(account, webhook, limit);
  const ids = new Set(made.map(({ id }) => id));
  const left = waiting.filter(({ id }) => !ids.has(id)).map((row) => ({ ...row, waits: true }));
  const rows = made.map((row) => ({ ...row, waits: false }));
  return inOrder(rows, left).slice(0, limit);
}

/** Puts those that are still to be made, as `newestDeliveries` says, among those that were; both newest first. */
function inOrder<Made extends Pick<WebhookDeliveryRow, 'event' | 'createdAt'>, Left extends Pick<Made, 'createdAt'>>(
  made: readonly Made[],
  left: readonly Left[],
): readonly (Made | Left)[] {
  const rows: (Made | Left)[] = [];
  let at = 0;
  for (const row of made) {
    for (let next = left[at]; next !== undefined && !isNewerPing(row, next); next = left[at]) {
      rows.push(next);
      at += 1;
    }
    rows.push(row);
  }
  return [...rows, ...left.slice(at)];
}

function isNewerPing(
  { event, createdAt }: Pick<WebhookDeliveryRow, 'event' | 'createdAt'>,
  waiting: Pick<WebhookDeliveryRow, 'createdAt'>,
): boolean {
  return event === 'ping' && createdAt > waiting.createdAt;
}

/** Returns the attempt whose answer is listed. */
function lastAttempt({ id, attemptLog }: WebhookDeliveryRow): readonly AttemptId[] {
  const last = attemptLog.at(-1);
  return last === undefined ? [] : [{ delivery: id, series: last.series, attempt: last.attempt }];
}

/** Returns one delivery with its bodies. Refused also for one of a webhook that the viewer may not see. */
export async function readWebhookDelivery(
  context: ListDeliveriesContext,
  wanted: Pick<WantedDeliveries, 'viewer' | 'webhook' | 'seen'> & { readonly delivery: WebhookDeliveryId },
): Promise<(DeliveryWithBodies & FoundWebhook) | { readonly refused: Refusal }> {
  const { viewer, webhook, seen } = wanted;
  const found = await findWebhook(context, viewer, webhook);
  if ('refused' in found) return found;
  const waiting = await findWaiting(context, viewer.account, webhook, wanted.delivery);
  await context.readModels.caughtUp(seen);
  const made = await context.readModels.webhookDelivery(viewer.account, webhook, wanted.delivery);
  const delivery = made ?? waiting;
  if (delivery === null) return { refused: { code: 'webhook-delivery-not-found' } };
  const answers = await context.deliveries.answers(lastAttempt(delivery));
  const payloads = await context.deliveries.payloads(made === null ? [] : [delivery.eventId]);
  const answer = answers.get(delivery.id) ?? null;
  return { ...found, delivery, waits: made === null, answer, payload: payloads.get(delivery.eventId) ?? null };
}

/** A webhook, and how the newest of its deliveries ended. */
export interface WebhookHealth extends FoundWebhook {
  readonly succeeded: number;
  readonly failed: number;
  readonly pending: number;
}

/** Lists the viewer's webhooks, oldest first, with counts of the last `WEBHOOK_HEALTH_DELIVERIES_MAX` deliveries. */
export async function listWebhookHealths(
  context: ListDeliveriesContext,
  viewer: WebhookViewer,
  seen: LogPosition,
): Promise<readonly WebhookHealth[]> {
  const webhooks = await listWebhooks(context, viewer);
  const healths: WebhookHealth[] = [];
  for (const found of webhooks) {
    const { id } = found.webhook;
    const newest = { account: viewer.account, webhook: id, seen, limit: WEBHOOK_HEALTH_DELIVERIES_MAX };
    const statuses = await newestStatuses(context, newest);
    const count = (wanted: WebhookDeliveryRow['status']): number =>
      statuses.filter((status) => status === wanted).length;
    healths.push({ ...found, succeeded: count('SUCCESS'), failed: count('FAILED'), pending: count('PENDING') });
  }
  return healths;
}

/**
 * As `newestDeliveries`, but reads no push, each of which may hold 100,000 updates: there may be hundreds of them on a
 * page. One that is made while this reads may count twice.
 */
async function newestStatuses(
  { waiting, readModels }: ListDeliveriesContext,
  { account, webhook, seen, limit }: Newest,
): Promise<readonly WebhookDeliveryRow['status'][]> {
  const rows = await waiting.newest(account, webhook, limit);
  await readModels.caughtUp(seen);
  const made = await readModels.webhookDeliveries(account, webhook, limit);
  const left = rows.flatMap(({ createdAt, waiting: count }) =>
    Array.from({ length: Math.min(count, limit) }, () => ({ createdAt, status: 'PENDING' as const })),
  );
  return inOrder(made, left)
    .slice(0, limit)
    .map(({ status }) => status);
}

interface Backlog {
  readonly pending: number;
  readonly oldestAt: Timestamp | null;
}

/** Returns how many deliveries have not ended, also of those that are still to be made, and the time of the oldest. */
export async function backlogOf(
  due: Pick<DueDeliveries, 'backlog'>,
  waiting: Pick<WaitingDeliveries, 'backlog'>,
): Promise<Backlog> {
  const [made, toMake] = await Promise.all([due.backlog(), waiting.backlog()]);
  const [oldestAt = null] = [made.oldestAt, toMake.oldestAt].filter((at) => at !== null).toSorted();
  return { pending: made.pending + toMake.pending, oldestAt };
}
