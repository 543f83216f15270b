/** Deliveries of webhooks: list them, ask for a ping, ask for one again. */
import type { z } from 'zod';
import { parseUuid, type WebhookDeliveryId, type WebhookId } from '../../../core/kernel/ids.ts';
import type { AttemptId } from '../../../core/ports/delivery-store.ts';
import type { AttemptRow, WebhookDeliveryRow } from '../../../core/ports/read-models.ts';
import { type AskedDelivery, pingWebhook, redeliver } from '../../../core/use-cases/webhooks/webhook-deliveries.ts';
import { findWebhook } from '../../../core/use-cases/webhooks/webhooks.ts';
import { attemptError } from '../attempt-errors.ts';
import { ok } from '../http/answer.ts';
import type { AccountCall, Outcome } from '../route.ts';
import type { DELIVERY_PARAMS, ID_PARAMS } from '../schemas/params.ts';
import type { ASKED_DELIVERY, DELIVERIES, DELIVERIES_QUERY } from '../schemas/webhook-deliveries.ts';

type DeliveryObject = z.output<typeof DELIVERIES>['deliveries'][number];

const NO_WEBHOOK: Outcome = { refused: { code: 'webhook-not-found' } };
const NO_DELIVERY: Outcome = { refused: { code: 'webhook-delivery-not-found' } };

export async function postPing(
  { context, origin }: AccountCall,
  { params }: { readonly params: z.output<typeof ID_PARAMS> },
): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NO_WEBHOOK;
  return asked(await pingWebhook(context, await origin(), id));
}

export async function postRedelivery(
  { context, origin }: AccountCall,
  { params }: { readonly params: z.output<typeof DELIVERY_PARAMS> },
): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NO_WEBHOOK;
  const deliveryId = parseUuid<WebhookDeliveryId>(params.delivery_id);
  return deliveryId === null ? NO_DELIVERY : asked(await redeliver(context, await origin(), id, deliveryId));
}

function asked(outcome: AskedDelivery | Extract<Outcome, { readonly refused: object }>): Outcome {
  if ('refused' in outcome) return outcome;
  const answer: z.output<typeof ASKED_DELIVERY> = { event_id: outcome.eventId, delivery_id: outcome.deliveryId };
  return ok(answer, 202);
}

export async function listDeliveries(
  { context, bearer, position }: AccountCall,
  { params, query }: { readonly params: z.output<typeof ID_PARAMS>; readonly query: z.output<typeof DELIVERIES_QUERY> },
): Promise<Outcome> {
  const { account } = bearer.token;
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NO_WEBHOOK;
  const found = await findWebhook(context, account, id);
  if ('refused' in found) return found;
  await context.readModels.caughtUp(position);
  const rows = await context.readModels.webhookDeliveries(account, id, query.limit);
  const answers = await context.deliveries.answers(rows.flatMap(lastAnswer));
  const payloads = query.include_payload ? await context.deliveries.payloads(rows.map(({ eventId }) => eventId)) : null;
  const list: z.output<typeof DELIVERIES> = {
    deliveries: rows.map((row) => {
      const object = deliveryObject(row, answers.get(row.id) ?? null);
      return payloads === null ? object : { ...object, payload: parsePayload(payloads.get(row.eventId) ?? null) };
    }),
  };
  return ok(list);
}

/** The attempt whose answer is shown. */
function lastAnswer({ id, attemptLog }: WebhookDeliveryRow): readonly AttemptId[] {
  const last = attemptLog.at(-1);
  return last === undefined ? [] : [{ delivery: id, series: last.series, attempt: last.attempt }];
}

/** Our own JSON: an object. */
function parsePayload(text: string | null): Record<string, unknown> | null {
  return text === null ? null : (JSON.parse(text) as Record<string, unknown>);
}

function deliveryObject(row: WebhookDeliveryRow, answer: Uint8Array | null): DeliveryObject {
  const last = row.attemptLog.at(-1);
  return {
    id: row.id,
    event_id: row.eventId,
    event: row.event,
    status: row.status,
    http_status: last?.httpStatus ?? null,
    attempts: row.attemptLog.length,
    error: last === undefined ? null : attemptError(last),
    response_body: answer === null ? null : new TextDecoder().decode(answer),
    created_at: row.createdAt,
    last_attempt_at: last?.at ?? null,
    next_attempt_at: row.nextAttemptAt,
    attempt_log: row.attemptLog.map(attemptObject),
  };
}

function attemptObject(attempt: AttemptRow): DeliveryObject['attempt_log'][number] {
  const { at, httpStatus, durationMs } = attempt;
  return { at, http_status: httpStatus, error: attemptError(attempt), duration_ms: durationMs };
}
