/** A delivery as its stream says. */
import type { WebhookEventKind } from '../kernel/webhook-events.ts';
import type { EventId, RepositoryId, Timestamp, Uuid, WebhookId } from '../kernel/ids.ts';

export interface DeliveryFacts {
  readonly webhookId: WebhookId;
  readonly eventId: EventId;
  readonly event: WebhookEventKind;
  readonly repositoryId: RepositoryId | null;
  readonly payloadSha256: string;
  /** Counts from 1; a redelivery starts the next. */
  readonly series: number;
  /** Made in this series. */
  readonly attempts: number;
}

export interface PendingDelivery extends DeliveryFacts {
  readonly status: 'pending';
  /** The next attempt is not made before. */
  readonly nextAttemptAt: Timestamp;
  readonly next: NextAttempt;
}

/** Where the next attempt stands: free to be claimed, not told to be due yet, or somebody's until then. */
export type NextAttempt =
  | { readonly status: 'due' }
  | { readonly status: 'waiting' }
  | { readonly status: 'claimed'; readonly claimId: Uuid; readonly until: Timestamp };

export interface EndedDelivery extends DeliveryFacts {
  readonly status: 'succeeded' | 'failed';
}

export type WebhookDelivery = { readonly status: 'absent' } | PendingDelivery | EndedDelivery;
