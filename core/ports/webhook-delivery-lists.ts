/** Lists of webhook deliveries, read from a read model. */
import type { AccountId, EventId, Timestamp, WebhookDeliveryId, WebhookId } from '../kernel/ids.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';

export interface AttemptRow {
  /** Counts from 1; each redelivery starts the next series. */
  readonly series: number;
  readonly attempt: number;
  readonly at: Timestamp;
  readonly durationMs: number;
  readonly httpStatus: number | null;
  /** A stable code; null if the attempt succeeded. */
  readonly error: string | null;
  readonly detail: string | null;
}

export interface WebhookDeliveryRow {
  readonly id: WebhookDeliveryId;
  readonly eventId: EventId;
  readonly event: WebhookEventKind;
  readonly status: 'PENDING' | 'SUCCESS' | 'FAILED';
  readonly createdAt: Timestamp;
  /** Null after the delivery has ended. */
  readonly nextAttemptAt: Timestamp | null;
  /** Until when the account's budget makes the first attempt of this series wait; null if it does not. */
  readonly deferredUntil: Timestamp | null;
  /** The attempts of all series, oldest first. */
  readonly attemptLog: readonly AttemptRow[];
}

export interface WebhookDeliveryLists {
  /** Returns at most `limit` deliveries to a webhook of the account, newest first. */
  webhookDeliveries(account: AccountId, webhook: WebhookId, limit: number): Promise<readonly WebhookDeliveryRow[]>;
  /** Returns one delivery to a webhook of the account; null if there is none. */
  webhookDelivery(
    account: AccountId,
    webhook: WebhookId,
    delivery: WebhookDeliveryId,
  ): Promise<WebhookDeliveryRow | null>;
}
