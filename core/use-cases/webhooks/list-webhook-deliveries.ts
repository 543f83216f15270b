/** Lists the deliveries of a webhook, with the payloads that were sent and the answers that are still stored. */
import type { LogPosition } from '../../kernel/envelope.ts';
import type { WebhookId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AttemptId, DeliveryStore } from '../../ports/delivery-store.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { Vault } from '../../ports/vault.ts';
import type { WebhookDeliveryLists, WebhookDeliveryRow } from '../../ports/webhook-delivery-lists.ts';
import type { Context } from '../../runtime/execute.ts';
import { findWebhook, type WebhookViewer } from './webhooks.ts';

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
