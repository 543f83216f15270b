/** What can be asked of a delivery. */
import type { WebhookEventKind } from '../kernel/webhook-events.ts';
import type { EventId, RepositoryId, Timestamp, Uuid, WebhookId } from '../kernel/ids.ts';
import type { AttemptResult } from './attempt.ts';

export type WebhookDeliveryCommand =
  | {
      readonly type: 'RequestDelivery';
      readonly webhookId: WebhookId;
      readonly eventId: EventId;
      readonly event: WebhookEventKind;
      readonly repositoryId: RepositoryId | null;
      readonly payloadSha256: string;
    }
  /** Decides nothing while there is nothing to attempt now: whether the claim is one's own, the state says. */
  | { readonly type: 'ClaimAttempt'; readonly claimId: Uuid; readonly now: Timestamp }
  /** Says that what the next attempt waited for is over; nothing before its time, or while it waits for nothing. */
  | { readonly type: 'MakeAttemptDue'; readonly now: Timestamp }
  | {
      readonly type: 'RecordAttempt';
      readonly series: number;
      readonly attempt: number;
      readonly startedAt: Timestamp;
      /** Whole milliseconds. */
      readonly durationMs: number;
      readonly result: AttemptResult;
    }
  | { readonly type: 'Redeliver' };
