/** The results of an attempt at a delivery, and when the next one is made (docs/workflows.md, Webhook deliveries). */
import type { Exchange, OutgoingFailure } from '../kernel/exchange.ts';
import { plusMs, type Timestamp, timestamp } from '../kernel/ids.ts';
import { WEBHOOK_RETRY_WAITS_MS } from '../kernel/limits.ts';
import type { TargetFault } from '../kernel/target-fault.ts';
import type { AttemptOutcome, WebhookDeliveryAttempted } from './events.ts';

/** Why nothing was sent. Each reason is checked again before every attempt. */
export type NotSent = 'webhook-inactive' | 'webhook-deleted' | 'unexpected-error' | TargetFault;

export type AttemptResult =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly answerSha256: string;
      /** `answer-cut` if the body broke off or did not end in time. */
      readonly detail: 'answer-cut' | null;
    }
  | {
      readonly kind: 'failed';
      readonly failure: OutgoingFailure;
      readonly status: number | null;
      readonly detail: string | null;
    }
  | { readonly kind: 'not-sent'; readonly why: NotSent };

/** An attempt's result in the form of its event. */
export interface StatedResult {
  readonly outcome: AttemptOutcome;
  readonly http_status: number | null;
  readonly error: string | null;
  readonly detail: string | null;
  readonly answer_sha256: string | null;
}

/**
 * The status decides, whatever becomes of the body behind it: the receiver has the payload. A redirect is a failure,
 * because Strata does not follow it.
 */
function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

export function statedResult(result: AttemptResult): StatedResult {
  switch (result.kind) {
    case 'answered': {
      const { status: http_status, detail, answerSha256: answer_sha256 } = result;
      const stated = { http_status, detail, answer_sha256 };
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
 * Returns when the next attempt is due if this one failed (docs/workflows.md, Webhook deliveries). The wait begins at
 * the end of this attempt. Null after the last attempt of a series.
 */
export function retryAt({
  attempt,
  started_at: startedAt,
  duration_ms: durationMs,
}: Pick<WebhookDeliveryAttempted['data'], 'attempt' | 'started_at' | 'duration_ms'>): Timestamp | null {
  const waitMs = WEBHOOK_RETRY_WAITS_MS[attempt - 1];
  return waitMs === undefined ? null : plusMs(timestamp(startedAt), durationMs + waitMs);
}

/** Converts an exchange into a result. `sha256` hashes the part of the answer's body that was kept. */
export function resultOf(exchange: Exchange, sha256: (body: Uint8Array) => string): AttemptResult {
  switch (exchange.outcome) {
    case 'answered': {
      const { status, body, extent } = exchange;
      return { kind: 'answered', status, answerSha256: sha256(body), detail: extent === 'cut' ? 'answer-cut' : null };
    }
    case 'refused':
      return { kind: 'not-sent', why: exchange.fault };
    case 'failed':
      return { kind: 'failed', failure: exchange.failure, status: exchange.status, detail: exchange.detail };
  }
}
