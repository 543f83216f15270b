/** How an attempt at a delivery ended, and what that means for the delivery (spec, States and transitions). */
import type { Exchange, OutgoingFailure, TargetFault } from '../ports/outgoing-requests.ts';
import { plusMs, type Timestamp, timestamp } from '../kernel/ids.ts';
import { WEBHOOK_RETRY_WAITS_MS } from '../kernel/limits.ts';
import type { AttemptOutcome, WebhookDeliveryAttempted } from './events.ts';

/** Why nothing was sent; each is looked at anew before every attempt. */
export type NotSent = 'webhook-inactive' | 'webhook-deleted' | 'unexpected-error' | TargetFault;

export type AttemptResult =
  | { readonly kind: 'answered'; readonly status: number; readonly answerSha256: string }
  | {
      readonly kind: 'failed';
      readonly failure: OutgoingFailure;
      readonly status: number | null;
      readonly detail: string | null;
    }
  | { readonly kind: 'not-sent'; readonly why: NotSent };

/** As an attempt's event states it. */
export interface StatedResult {
  readonly outcome: AttemptOutcome;
  readonly http_status: number | null;
  readonly error: string | null;
  readonly detail: string | null;
  readonly answer_sha256: string | null;
}

/** Redirects are no success: nobody follows them. */
function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

export function statedResult(result: AttemptResult): StatedResult {
  switch (result.kind) {
    case 'answered': {
      const stated = { http_status: result.status, detail: null, answer_sha256: result.answerSha256 };
      if (isSuccess(result.status)) return { outcome: 'succeeded', error: null, ...stated };
      return { outcome: 'failed', error: 'status-not-2xx', ...stated };
    }
    case 'failed': {
      const { failure: error, status: http_status, detail } = result;
      return { outcome: 'failed', http_status, error, detail, answer_sha256: null };
    }
    case 'not-sent':
      return { outcome: 'refused', http_status: null, error: result.why, detail: null, answer_sha256: null };
  }
}

/**
 * When the next attempt after this one is made if it failed: from its end (spec, Delivery behavior). Null after the last
 * of its series.
 */
export function retryAt({
  attempt,
  started_at: startedAt,
  duration_ms: durationMs,
}: Pick<WebhookDeliveryAttempted['data'], 'attempt' | 'started_at' | 'duration_ms'>): Timestamp | null {
  const waitMs = WEBHOOK_RETRY_WAITS_MS[attempt - 1];
  return waitMs === undefined ? null : plusMs(timestamp(startedAt), durationMs + waitMs);
}

/** The result of an exchange; `sha256` is of the body that it kept. */
export function resultOf(exchange: Exchange, sha256: (body: Uint8Array) => string): AttemptResult {
  switch (exchange.outcome) {
    case 'answered':
      return { kind: 'answered', status: exchange.status, answerSha256: sha256(exchange.body) };
    case 'refused':
      return { kind: 'not-sent', why: exchange.fault };
    case 'failed':
      return { kind: 'failed', failure: exchange.failure, status: exchange.status, detail: exchange.detail };
  }
}
