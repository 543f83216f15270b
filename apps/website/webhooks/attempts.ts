/** The attempts of a delivery as a line of layers: those made, and those still to come. */
import { WEBHOOK_ATTEMPTS_MAX, WEBHOOK_RETRY_WAITS_MS } from '../../../core/kernel/limits.ts';
import type { AttemptRow, WebhookDeliveryRow } from '../../../core/ports/webhook-delivery-lists.ts';
import { attemptError } from '../../front-door/texts/attempt-errors.ts';
import { type Html, html, NOTHING } from '../layout/html.ts';

/** The attempts of the last series; each redelivery begins one. */
export function attemptLine({ status, attemptLog, deferredUntil }: WebhookDeliveryRow): Html {
  const series = attemptLog.at(-1)?.series ?? 1;
  const made = attemptLog.filter((attempt) => attempt.series === series);
  const coming = status === 'PENDING' ? WEBHOOK_RETRY_WAITS_MS.slice(Math.max(0, made.length - 1)) : [];
  if (made.length === 0 && coming.length === 0) return NOTHING;
  const first =
    status === 'PENDING' &&
    made.length === 0 &&
    html`<li>${deferredUntil === null ? 'at once' : 'in a later hour'}</li>`;
  return html`<ol class="attempts">${made.map(madeItem)}${first}${coming.map(
    (waitMs) => html`<li>after ${waitMs / 1_000} s</li>`,
  )}</ol>`;
}

function madeItem(attempt: AttemptRow, index: number): Html {
  const { error, durationMs } = attempt;
  const waitMs = WEBHOOK_RETRY_WAITS_MS[index - 1];
  const when = waitMs === undefined ? 'at once' : `after ${waitMs / 1_000} s`;
  return html`<li class="${error === null ? 'good' : 'bad'}" title="${outcomeText(attempt)}"><b>${codeOf(attempt)}</b>${when}, ${durationMs} ms</li>`;
}

export function outcomeText(attempt: AttemptRow): string {
  const success = attempt.detail === 'answer-cut' ? 'Delivered; the answer broke off' : 'Delivered';
  return attemptError(attempt) ?? success;
}

/** An attempt for a webhook that is off sends nothing, so nothing can answer. */
function codeOf({ error, httpStatus }: AttemptRow): number | string {
  if (httpStatus !== null) return httpStatus;
  return error === 'webhook-inactive' || error === 'webhook-deleted' ? 'not sent' : 'no answer';
}

/** Says in words how a delivery stands. */
export function attemptText({ attemptLog }: WebhookDeliveryRow): string {
  const series = attemptLog.at(-1)?.series ?? 1;
  const count = attemptLog.filter((attempt) => attempt.series === series).length;
  return series === 1 ? `${count} of ${WEBHOOK_ATTEMPTS_MAX}` : `${count} of ${WEBHOOK_ATTEMPTS_MAX}, series ${series}`;
}
