/** Webhook deliveries: list them, request a ping, redeliver one. */
import type { z } from 'zod';
import { parseUuid, type WebhookDeliveryId, type WebhookId } from '../../../core/kernel/ids.ts';
import type { AttemptRow, WebhookDeliveryRow } from '../../../core/ports/webhook-delivery-lists.ts';
import { listWebhookDeliveries } from '../../../core/use-cases/webhooks/list-webhook-deliveries.ts';
import { pingWebhook, type RequestedDelivery, redeliver } from '../../../core/use-cases/webhooks/webhook-deliveries.ts';
import { attemptError, deferralText } from '../../front-door/texts/attempt-errors.ts';
import { ok } from '../http/answer.ts';
import { type AccountCall, accountRoute, type Outcome, type Route } from '../route.ts';
import { DELIVERY_PARAMS, ID_PARAMS } from '../schemas/params.ts';
import { ASKED_DELIVERY, DELIVERIES, DELIVERIES_QUERY } from '../schemas/webhook-deliveries.ts';
import { viewerOf, webhookOrigin } from './webhooks.ts';

const DELIVERIES_NOTES =
  'Newest first. An attempt that is not answered 2xx within 30 seconds is repeated 8, 16, 32 and so on to 512 seconds after the one before, 8 attempts in all. Bodies are kept for the retention time of the service. A push that moves very many refs is delivered for its first 1,000 branches and tags.';

export const WEBHOOK_DELIVERY_ROUTES: readonly Route[] = [
  accountRoute({
    operationId: 'pingWebhook',
    tag: 'Webhooks',
    summary: 'Send a ping',
    description:
      'The ping is sent to this webhook only, whether or not `events` lists it. Its delivery is listed like any other. The delivery of an inactive webhook fails immediately.',
    method: 'POST',
    path: '/v1/webhooks/{id}/ping',
    beyondQuota: true,
    grant: 'API_WEBHOOKS',
    schemas: { params: ID_PARAMS },
    answers: { 202: ASKED_DELIVERY },
    problems: [404],
    handle: postPing,
  }),
  accountRoute({
    operationId: 'listWebhookDeliveries',
    tag: 'Webhooks',
    summary: 'List deliveries',
    description: DELIVERIES_NOTES,
    method: 'GET',
    path: '/v1/webhooks/{id}/deliveries',
    grant: 'API_WEBHOOKS',
    schemas: { params: ID_PARAMS, query: DELIVERIES_QUERY },
    answers: { 200: DELIVERIES },
    problems: [404],
    handle: getDeliveries,
  }),
  accountRoute({
    operationId: 'redeliverWebhookDelivery',
    tag: 'Webhooks',
    summary: 'Redeliver',
    description:
      'The same delivery, with the same id and payload, is pending again with eight more attempts; its log is kept. A delivery that is pending stays as it is. 404 when its payload is no longer kept, 422 after 99 redeliveries.',
    method: 'POST',
    path: '/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver',
    beyondQuota: true,
    grant: 'API_WEBHOOKS',
    schemas: { params: DELIVERY_PARAMS },
    answers: { 202: ASKED_DELIVERY },
    problems: [404, 422],
    handle: postRedelivery,
  }),
];

type DeliveryObject = z.output<typeof DELIVERIES>['deliveries'][number];

const NO_WEBHOOK: Outcome = { refused: { code: 'webhook-not-found' } };
const NO_DELIVERY: Outcome = { refused: { code: 'webhook-delivery-not-found' } };

async function postPing(
  call: AccountCall,
  { params }: { readonly params: z.output<typeof ID_PARAMS> },
): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NO_WEBHOOK;
  return acceptedAnswer(await pingWebhook(call.context, await webhookOrigin(call), id));
}

async function postRedelivery(
  call: AccountCall,
  { params }: { readonly params: z.output<typeof DELIVERY_PARAMS> },
): Promise<Outcome> {
  const id = parseUuid<WebhookId>(params.id);
  if (id === null) return NO_WEBHOOK;
  const deliveryId = parseUuid<WebhookDeliveryId>(params.delivery_id);
  if (deliveryId === null) return NO_DELIVERY;
  return acceptedAnswer(await redeliver(call.context, await webhookOrigin(call), id, deliveryId));
}

function acceptedAnswer(outcome: RequestedDelivery | Extract<Outcome, { readonly refused: object }>): Outcome {
  if ('refused' in outcome) return outcome;
  const answer: z.output<typeof ASKED_DELIVERY> = { event_id: outcome.eventId, delivery_id: outcome.deliveryId };
  return ok(answer, 202);
}

async function getDeliveries(
  { context, principal, position }: AccountCall,
  { params, query }: { readonly params: z.output<typeof ID_PARAMS>; readonly query: z.output<typeof DELIVERIES_QUERY> },
): Promise<Outcome> {
  const webhook = parseUuid<WebhookId>(params.id);
  if (webhook === null) return NO_WEBHOOK;
  const { limit, include_payload: withPayloads } = query;
  const wanted = { viewer: viewerOf(principal), webhook, seen: position, limit, withPayloads };
  const listed = await listWebhookDeliveries(context, wanted);
  if ('refused' in listed) return listed;
  const list: z.output<typeof DELIVERIES> = {
    deliveries: listed.map(({ delivery, answer, payload }) => {
      const object = deliveryObject(delivery, answer);
      return withPayloads ? { ...object, payload: parsePayload(payload) } : object;
    }),
  };
  return ok(list);
}

/** The server wrote this text itself, as a JSON object. */
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
    error: deferralText(row) ?? (last === undefined ? null : attemptError(last)),
    response_body: answer === null ? null : new TextDecoder().decode(answer),
    created_at: row.createdAt,
    last_attempt_at: last?.at ?? null,
    next_attempt_at: row.nextAttemptAt,
    attempt_log: row.attemptLog.map(attemptObject),
  };
}

function attemptObject(attempt: AttemptRow): DeliveryObject['attempt_log'][number] {
  const { at, httpStatus, detail, durationMs } = attempt;
  return { at, http_status: httpStatus, error: attemptError(attempt), detail, duration_ms: durationMs };
}
