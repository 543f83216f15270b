/**
 * Events of one delivery of one notification to one webhook, on `webhookDelivery-<id>`.
 *
 * Must stay true: operational, pruned after retention; they hold digests of what was sent and answered, never the bytes,
 * the URL or a word of the receiver's.
 */
import type { WebhookEventKind } from '../kernel/webhook-events.ts';
import { type DomainEvent, type EventKinds, OPERATIONAL_V1 } from '../kernel/decider.ts';

/** `refused`: nothing was sent, and nothing is tried again. */
export type AttemptOutcome = 'succeeded' | 'failed' | 'refused';

export type WebhookDeliveryRequested = DomainEvent<
  'WebhookDeliveryRequested',
  {
    readonly webhook_id: string;
    /** The notification's own id: one `RefsUpdated` makes several. */
    readonly event_id: string;
    readonly event: WebhookEventKind;
    /** Null for a ping. */
    readonly repository_id: string | null;
    /** SHA-256 of the payload's bytes, hex. */
    readonly payload_sha256: string;
  }
>;
/** Whose claim this is makes the attempt; after `until` it falls due again. */
export type WebhookDeliveryAttemptClaimed = DomainEvent<
  'WebhookDeliveryAttemptClaimed',
  { readonly series: number; readonly attempt: number; readonly claim_id: string; readonly until: string }
>;
export type WebhookDeliveryAttempted = DomainEvent<
  'WebhookDeliveryAttempted',
  {
    /** Counts from 1; a redelivery starts the next. */
    readonly series: number;
    /** Counts from 1 in each series. */
    readonly attempt: number;
    readonly started_at: string;
    readonly duration_ms: number;
    readonly outcome: AttemptOutcome;
    readonly http_status: number | null;
    /** A stable code; null for a success. */
    readonly error: string | null;
    /** The platform's code, such as `ECONNREFUSED`. */
    readonly detail: string | null;
    /** SHA-256 of what was kept of the answer's body, hex; null without an answer. */
    readonly answer_sha256: string | null;
  }
>;
/** The wait after a failed attempt is over, or the claim of this one has lapsed: whoever claims it may make it now. */
export type WebhookDeliveryAttemptFellDue = DomainEvent<
  'WebhookDeliveryAttemptFellDue',
  { readonly series: number; readonly attempt: number }
>;
export type WebhookDeliverySucceeded = DomainEvent<'WebhookDeliverySucceeded', { readonly series: number }>;
export type WebhookDeliveryFailed = DomainEvent<'WebhookDeliveryFailed', { readonly series: number }>;
/** As many attempts again, from now on. */
export type WebhookRedelivered = DomainEvent<'WebhookRedelivered', { readonly series: number }>;

export type WebhookDeliveryEvent =
  | WebhookDeliveryRequested
  | WebhookDeliveryAttemptClaimed
  | WebhookDeliveryAttempted
  | WebhookDeliveryAttemptFellDue
  | WebhookDeliverySucceeded
  | WebhookDeliveryFailed
  | WebhookRedelivered;

export const webhookDeliveryEventKinds: EventKinds<WebhookDeliveryEvent> = {
  WebhookDeliveryRequested: OPERATIONAL_V1,
  WebhookDeliveryAttemptClaimed: OPERATIONAL_V1,
  WebhookDeliveryAttempted: OPERATIONAL_V1,
  WebhookDeliveryAttemptFellDue: OPERATIONAL_V1,
  WebhookDeliverySucceeded: OPERATIONAL_V1,
  WebhookDeliveryFailed: OPERATIONAL_V1,
  WebhookRedelivered: OPERATIONAL_V1,
};
