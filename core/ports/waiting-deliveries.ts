/**
 * Webhook deliveries that are still to be made: one row for a push and a webhook.
 *
 * Invariants: rows are operational and may be lost or repeated; the ids of deliveries follow from the push, so none
 * is made twice. A row is stored before the policy passes its push, and moves on after its deliveries were requested. A
 * row holds nothing of the repository: no layer, no object and no payload is kept for it.
 */
import type { LogPosition, StreamName } from '../kernel/envelope.ts';
import type { AccountId, EventId, Timestamp, WebhookDeliveryId, WebhookId } from '../kernel/ids.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';

export interface WaitingRow {
  /** The id of the push's `RefsUpdated`, which is at this place of the log. */
  readonly push: EventId;
  readonly stream: StreamName;
  readonly revision: number;
  /** The rows of an account become deliveries in this order. */
  readonly position: LogPosition;
  readonly account: AccountId;
  readonly webhook: WebhookId;
  /** When the push was made. */
  readonly createdAt: Timestamp;
  /** What the webhook listened for then. */
  readonly kinds: readonly Exclude<WebhookEventKind, 'ping'>[];
  /** How many of the push's notifications (`notificationsOf`) the webhook is past. */
  readonly passed: number;
  /** How many deliveries of the row are still to be made; at least one. */
  readonly waiting: number;
}

export interface PlacedRow extends WaitingRow {
  /** How many deliveries of the account's earlier pushes are still to be made. */
  readonly ahead: number;
  /** How many webhooks have a row of this push. */
  readonly webhooks: number;
}

export interface WaitingDeliveries {
  /** Adds a row with the ids of its deliveries, or moves a known one on; one that is further stays so. */
  add(row: WaitingRow, deliveries: readonly WebhookDeliveryId[]): Promise<void>;
  /** Moves a row on; removes it when nothing waits any more. */
  moveOn(push: EventId, webhook: WebhookId, to: Pick<WaitingRow, 'passed' | 'waiting'>): Promise<void>;
  /** Returns the rows of the account's earliest push that has some. */
  earliest(account: AccountId): Promise<readonly WaitingRow[]>;
  /** Returns at most `limit` rows of one webhook, the newest push first. */
  newest(account: AccountId, webhook: WebhookId, limit: number): Promise<readonly PlacedRow[]>;
  /** Returns the webhook's rows that may hold a delivery: usually one or none. The ids must be compared. */
  mayHold(account: AccountId, webhook: WebhookId, delivery: WebhookDeliveryId): Promise<readonly PlacedRow[]>;
  /** Returns how many deliveries of the account are still to be made, where a row counts as `least` or more. */
  load(account: AccountId, least: number): Promise<number>;
  /** Returns how many deliveries of all accounts are still to be made, and when the oldest push of them was made. */
  backlog(): Promise<{ readonly pending: number; readonly oldestAt: Timestamp | null }>;
  /** Returns the accounts that have rows. */
  accounts(): Promise<readonly AccountId[]>;
  forgetWebhook(account: AccountId, webhook: WebhookId): Promise<void>;
  forgetAccount(account: AccountId): Promise<void>;
}
