/** Folds one delivery's events into its row. */
import { readEvent } from '../../core/kernel/decider.ts';
import { entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { timestamp } from '../../core/kernel/ids.ts';
import type { AttemptRow, WebhookDeliveryRow } from '../../core/ports/webhook-delivery-lists.ts';
import { retryAt } from '../../core/webhook-delivery/attempt.ts';
import { type WebhookDeliveryEvent, webhookDeliveryEventKinds } from '../../core/webhook-delivery/events.ts';

export interface StoredDelivery {
  readonly id: string;
  readonly account_id: string | null;
  readonly webhook_id: string;
  readonly event_id: string;
  readonly event: WebhookDeliveryRow['event'];
  readonly repository_id: string | null;
  readonly status: WebhookDeliveryRow['status'];
  readonly series: number;
  readonly created_at: string;
  readonly next_attempt_at: string | null;
  readonly due_since: string | null;
  readonly deferred_until: string | null;
  readonly is_first: boolean;
  readonly attempt_log: readonly AttemptRow[];
  readonly position: string;
}

/** Returns the row after the next event; `row` is null before the first. */
export function foldDelivery(row: StoredDelivery | null, recorded: RecordedEvent): StoredDelivery {
  const event = readEvent<WebhookDeliveryEvent>(webhookDeliveryEventKinds, recorded);
  const { occurredAt } = recorded;
  if (event.type === 'WebhookDeliveryRequested') {
    const { payload_sha256: _digest, not_before, ...facts } = event.data;
    return {
      id: entityIdOf(recorded.stream),
      account_id: recorded.accountId,
      ...facts,
      status: 'PENDING',
      series: 1,
      created_at: occurredAt,
      ...firstAttempt(not_before, occurredAt),
      is_first: true,
      attempt_log: [],
      position: String(recorded.position),
    };
  }
  if (row === null) throw new TypeError(`${recorded.stream} does not begin with a request`);
  switch (event.type) {
    case 'WebhookDeliveryAttemptClaimed':
      return { ...row, due_since: null };
    case 'WebhookDeliveryAttempted': {
      const { attempt, started_at: at, duration_ms: durationMs, http_status: httpStatus, error, detail } = event.data;
      const { series } = event.data;
      const made: AttemptRow = { series, attempt, at: timestamp(at), durationMs, httpStatus, error, detail };
      const attempt_log = [...row.attempt_log, made];
      return { ...row, attempt_log, next_attempt_at: retryAt(event.data), due_since: null, is_first: false };
    }
    case 'WebhookDeliveryAttemptFellDue':
      return { ...row, due_since: occurredAt, deferred_until: null };
    case 'WebhookDeliverySucceeded':
      return { ...row, status: 'SUCCESS', next_attempt_at: null, due_since: null };
    case 'WebhookDeliveryFailed':
      return { ...row, status: 'FAILED', next_attempt_at: null, due_since: null };
    case 'WebhookRedelivered': {
      const { series, not_before } = event.data;
      return { ...row, series, status: 'PENDING', ...firstAttempt(not_before, occurredAt) };
    }
  }
}

/** A delivery beyond the account's budget is not due before its time, when an event says so. */
function firstAttempt(notBefore: string | null, occurredAt: string) {
  return {
    next_attempt_at: notBefore ?? occurredAt,
    due_since: notBefore === null ? occurredAt : null,
    deferred_until: notBefore,
  };
}
