/**
 * Events of one delivery of one notification to one webhook, on `webhookDelivery-<id>`.
 *
 * Invariants: the events are operational and pruned after retention. They hold digests of what was sent and
 * answered, never the bytes, the URL or any text of the receiver.
 */
import { type DomainEvent, type EventKind, type EventKinds, OPERATIONAL_V1 } from '../kernel/decider.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';

/** `refused`: nothing was sent, and no further attempt is made. */
export type AttemptOutcome = 'succeeded' | 'failed' | 'refused';

export type WebhookDeliveryRequested = DomainEvent<
  'WebhookDeliveryRequested',
  {
    readonly webhook_id: string;
    /** The id of the notification. One `RefsUpdated` makes several notifications. */
    readonly event_id: string;
    readonly event: WebhookEventKind;
    /** Null for a ping. */
    readonly repository_id: string | null;
    /** SHA-256 of the payload's bytes, hex. */
    readonly payload_sha256: string;
    /** RFC 3339. No attempt is made before it: the account's budget of this hour was used up. Null: immediately. */
    readonly not_before: string | null;
  }
>;
/** The process that holds this claim makes the attempt. After `until` the attempt is due again. */
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
    /** The error code of the operating system, such as `ECONNREFUSED`; `answer-cut`; or null. */
    readonly detail: string | null;
    /** SHA-256 of the part of the answer's body that was kept, hex; null without an answer. */
    readonly answer_sha256: string | null;
  }
>;
/**
 * The wait before this attempt is over, or its claim has lapsed: after a failure, or for the account's budget. A
 * process may claim it now.
 */
export type WebhookDeliveryAttemptFellDue = DomainEvent<
  'WebhookDeliveryAttemptFellDue',
  { readonly series: number; readonly attempt: number }
>;
export type WebhookDeliverySucceeded = DomainEvent<'WebhookDeliverySucceeded', { readonly series: number }>;
export type WebhookDeliveryFailed = DomainEvent<'WebhookDeliveryFailed', { readonly series: number }>;
/** Starts a new series, with as many attempts as the first. */
export type WebhookRedelivered = DomainEvent<
  'WebhookRedelivered',
  {
    readonly series: number;
    /** The same as in the request. */
    readonly not_before: string | null;
  }
>;

export type WebhookDeliveryEvent =
  | WebhookDeliveryRequested
  | WebhookDeliveryAttemptClaimed
  | WebhookDeliveryAttempted
  | WebhookDeliveryAttemptFellDue
  | WebhookDeliverySucceeded
  | WebhookDeliveryFailed
  | WebhookRedelivered;

/** In version 1 every first attempt of a series was due immediately. */
const WITH_BUDGET: EventKind = {
  version: 2,
  record: false,
  upcasters: [(data) => ({ ...data, not_before: null })],
};

export const webhookDeliveryEventKinds: EventKinds<WebhookDeliveryEvent> = {
  WebhookDeliveryRequested: WITH_BUDGET,
  WebhookDeliveryAttemptClaimed: OPERATIONAL_V1,
  WebhookDeliveryAttempted: OPERATIONAL_V1,
  WebhookDeliveryAttemptFellDue: OPERATIONAL_V1,
  WebhookDeliverySucceeded: OPERATIONAL_V1,
  WebhookDeliveryFailed: OPERATIONAL_V1,
  WebhookRedelivered: WITH_BUDGET,
};
