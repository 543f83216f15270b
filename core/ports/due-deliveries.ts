/**
 * Webhook deliveries that wait for an attempt, as the dispatcher reads them.
 *
 * Invariants: the lists may be behind the log; whether an attempt is due is decided on the delivery's own stream.
 */
import type { LogPosition } from '../kernel/envelope.ts';
import type { AccountId, EventId, RepositoryId, Timestamp, WebhookDeliveryId, WebhookId } from '../kernel/ids.ts';

/** A webhook with at least one attempt that a node may claim. */
export interface DueWebhook {
  readonly webhook: WebhookId;
  readonly account: AccountId;
}

export interface DueDeliveryRow {
  readonly id: WebhookDeliveryId;
  readonly account: AccountId;
  /** Null for a ping. */
  readonly repository: RepositoryId | null;
  /** True before the first attempt was made. First attempts are made in order, within each repository. */
  readonly isFirst: boolean;
  /** False for a first attempt that a node has claimed: the first attempts after it wait until it was made. */
  readonly isDue: boolean;
}

export interface DueDeliveries {
  /** Resolves when the read model of deliveries has applied the log up to the position. */
  deliveriesCaughtUp(position: LogPosition): Promise<void>;
  dueWebhooks(): Promise<readonly DueWebhook[]>;
  /** Returns at most `limit` first attempts of the webhook, in order, and at most `limit` others, longest due first. */
  dueDeliveries(webhook: WebhookId, limit: number): Promise<readonly DueDeliveryRow[]>;
  /** Returns how many deliveries have not ended, and when the oldest of them was created. */
  backlog(): Promise<{ readonly pending: number; readonly oldestAt: Timestamp | null }>;
}

export interface EndedDeliveries extends Pick<DueDeliveries, 'deliveriesCaughtUp'> {
  /** Returns which of the account's deliveries, and which of its notifications, have not ended for every webhook. */
  pendingAmong(
    account: AccountId,
    events: readonly EventId[],
    deliveries: readonly WebhookDeliveryId[],
  ): Promise<{ readonly events: ReadonlySet<EventId>; readonly deliveries: ReadonlySet<WebhookDeliveryId> }>;
}

export interface PendingDeliveries extends Pick<DueDeliveries, 'deliveriesCaughtUp'> {
  /** Returns how many deliveries of the account have not ended; `limit` at most. */
  pendingOfAccount(account: AccountId, limit: number): Promise<number>;
}
