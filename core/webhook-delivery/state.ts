/** The state of a delivery, folded from its stream. */
import type { EventId, RepositoryId, Timestamp, Uuid, WebhookId } from '../kernel/ids.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';

export interface DeliveryFacts {
  readonly webhookId: WebhookId;
  readonly eventId: EventId;
  readonly event: WebhookEventKind;
  readonly repositoryId: RepositoryId | null;
  readonly payloadSha256: string;
  /** Counts from 1; a redelivery starts the next. */
  readonly series: number;
  /** The number of attempts that were made in this series. */
  readonly attempts: number;
}

export interface PendingDelivery extends DeliveryFacts {
  readonly status: 'pending';
  /** The next attempt is not made before this time. */
  readonly nextAttemptAt: Timestamp;
  readonly next: NextAttempt;
}

/** The next attempt may be claimed (`due`), waits for `WebhookDeliveryAttemptFellDue`, or is claimed until a time. */
export type NextAttempt =
  | { readonly status: 'due' }
  | { readonly status: 'waiting' }
  | { readonly status: 'claimed'; readonly claimId: Uuid; readonly until: Timestamp };

export interface EndedDelivery extends DeliveryFacts {
  readonly status: 'succeeded' | 'failed';
}

export type WebhookDelivery = { readonly status: 'absent' } | PendingDelivery | EndedDelivery;
