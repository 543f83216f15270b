/** The commands of a delivery. */
import type { EventId, RepositoryId, Timestamp, Uuid, WebhookId } from '../kernel/ids.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';
import type { AttemptResult } from './attempt.ts';

export type WebhookDeliveryCommand =
  | {
      readonly type: 'RequestDelivery';
      readonly webhookId: WebhookId;
      readonly eventId: EventId;
      readonly event: WebhookEventKind;
      readonly repositoryId: RepositoryId | null;
      readonly payloadSha256: string;
      /** Null: immediately. Otherwise the account's budget is used up until then. */
      readonly notBefore: Timestamp | null;
    }
  /** Makes no event if no attempt is due. The state after the command holds `claimId` only if this claim won. */
  | { readonly type: 'ClaimAttempt'; readonly claimId: Uuid; readonly now: Timestamp }
  /** Ends the wait for the next attempt. Makes no event before the wait is over, or if nothing waits. */
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
  | { readonly type: 'Redeliver'; readonly notBefore: Timestamp | null };
