/**
 * Lists the deliveries of webhooks, with the payloads that were sent and the answers that are still stored, and counts
 * how the last ones of each webhook ended.
 */
import type { LogPosition } from '../../kernel/envelope.ts';
import type { WebhookDeliveryId, WebhookId } from '../../kernel/ids.ts';
import { WEBHOOK_HEALTH_DELIVERIES_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AttemptId, DeliveryStore } from '../../ports/delivery-store.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { Vault } from '../../ports/vault.ts';
import type { WebhookDeliveryLists, WebhookDeliveryRow } from '../../ports/webhook-delivery-lists.ts';
import type { Context } from '../../runtime/execute.ts';
import { findWebhook, type FoundWebhook, listWebhooks, type WebhookViewer } from './webhooks.ts';

export interface ListDeliveriesContext extends Pick<Context, 'entities'> {
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
  /** The answer to the last attempt. Null if there is none, or if it is no longer stored. */
  readonly answer: Uint8Array | null;
  /** JSON. Null if it is no longer stored, or was not requested. */
  readonly payload: string | null;
}

/** Lists the newest first. Refused with `webhook-not-found`, also for a webhook that the viewer may not see. */
export async function listWebhookDeliveries(
  context: ListDeliveriesContext,
  { viewer, webhook, seen, limit, withPayloads }: WantedDeliveries,
): Promise<readonly DeliveryWithBodies[] | { readonly refused: Refusal }> {
  const found = await findWebhook(context, viewer, webhook);
  if ('refused' in found) return found;
  await context.readModels.caughtUp(seen);
  const rows = await context.readModels.webhookDeliveries(viewer.account, webhook, limit);
  const answers = await context.deliveries.answers(rows.flatMap(lastAttempt));
  const payloads = withPayloads ? await context.deliveries.payloads(rows.map(({ eventId }) => eventId)) : null;
  return rows.map((delivery) => ({
    delivery,
    answer: answers.get(delivery.id) ?? null,
    payload: payloads?.get(delivery.eventId) ?? null,
  }));
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
  await context.readModels.caughtUp(seen);
  const delivery = await context.readModels.webhookDelivery(viewer.account, webhook, wanted.delivery);
  if (delivery === null) return { refused: { code: 'webhook-delivery-not-found' } };
  const answers = await context.deliveries.answers(lastAttempt(delivery));
  const payloads = await context.deliveries.payloads([delivery.eventId]);
  const answer = answers.get(delivery.id) ?? null;
  return { ...found, delivery, answer, payload: payloads.get(delivery.eventId) ?? null };
}

/** A webhook, and how the newest of its deliveries ended. */
export interface WebhookHealth extends FoundWebhook {
  readonly succeeded: number;
  readonly failed: number;
  readonly pending: number;
}

/** Lists the viewer's webhooks, oldest first, with counts of the last `WEBHOOK_HEALTH_DELIVERIES_MAX` deliveries. */
export async function listWebhookHealths(
  context: Pick<ListDeliveriesContext, 'entities' | 'vault' | 'readModels'>,
  viewer: WebhookViewer,
  seen: LogPosition,
): Promise<readonly WebhookHealth[]> {
  const webhooks = await listWebhooks(context, viewer);
  await context.readModels.caughtUp(seen);
  const healths: WebhookHealth[] = [];
  for (const found of webhooks) {
    const { id } = found.webhook;
    const rows = await context.readModels.webhookDeliveries(viewer.account, id, WEBHOOK_HEALTH_DELIVERIES_MAX);
    const count = (status: WebhookDeliveryRow['status']): number => rows.filter((row) => row.status === status).length;
    healths.push({ ...found, succeeded: count('SUCCESS'), failed: count('FAILED'), pending: count('PENDING') });
  }
  return healths;
}
