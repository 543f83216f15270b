/**
 * Makes one attempt at a delivery: claims it, reads the webhook again, sends the payload, stores the answer and records
 * the result.
 *
 * Invariants: the claim is appended before anything is sent, so only one of several processes sends. The result is
 * recorded after it. If the process dies between the two, the attempt is made again, with the same delivery id and the
 * same bytes.
 */
import { ALL_REPOSITORIES } from '../../access-token/repository-selection.ts';
import { accounts } from '../../account/evolve.ts';
import type { Webhook } from '../../account/webhooks/state.ts';
import { KIB } from '../../kernel/byte-units.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { Exchange } from '../../kernel/exchange.ts';
import { type AccountId, type Timestamp, type Uuid, type WebhookDeliveryId } from '../../kernel/ids.ts';
import { WEBHOOK_ATTEMPT_SPAN_MS } from '../../kernel/limits.ts';
import type { Log } from '../../ports/log.ts';
import type { OutgoingRequests } from '../../ports/outgoing-requests.ts';
import type { Vault } from '../../ports/vault.ts';
import type { Entity } from '../../runtime/entity.ts';
import { execute } from '../../runtime/execute.ts';
import { isOutage } from '../../runtime/is-outage.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { type AttemptResult, type NotSent, resultOf, statedResult } from '../../webhook-delivery/attempt.ts';
import { decideWebhookDelivery } from '../../webhook-delivery/decide.ts';
import type { AttemptOutcome } from '../../webhook-delivery/events.ts';
import { webhookDeliveries } from '../../webhook-delivery/evolve.ts';
import type { PendingDelivery, WebhookDelivery } from '../../webhook-delivery/state.ts';
import type { DeliveryContext } from './webhook-deliveries.ts';
import { findWebhook } from './webhooks.ts';

/** How much of an answer's body is kept. */
export const WEBHOOK_ANSWER_BYTES_MAX = 16 * KIB;

export interface AttemptContext extends DeliveryContext {
  readonly vault: Vault;
  readonly outgoing: OutgoingRequests;
  readonly log: Log;
  /** `Strata-Webhook/<version>` */
  readonly agent: string;
  /** Called for each attempt after it was recorded, for the metrics. */
  readonly onAttempted: (outcome: AttemptOutcome, durationMs: number) => void;
}

/** When a delivery's next attempt is due, as of the last event that was read. */
export interface DeliverySchedule {
  /** When the attempt may be claimed. Null if it waits for an event, is claimed, or the delivery has ended. */
  readonly dueAt: Timestamp | null;
  /** Whether the delivery's first attempt is not recorded yet. */
  readonly isFirst: boolean;
  /** The position of the delivery's last event. */
  readonly position: LogPosition;
}

/**
 * Makes the next attempt if it is due and not claimed. Rejects in an outage, and then its claim lapses
 * (record-attempt-due.ts). Records nothing after the signal was aborted.
 */
export async function attemptDelivery(
  context: AttemptContext,
  delivery: { readonly id: WebhookDeliveryId; readonly account: AccountId },
  signal: AbortSignal,
): Promise<DeliverySchedule> {
  const { id, account } = delivery;
  const about = { account, cause: systemCause(context.ids, 'webhook-delivery') };
  const claimId = context.ids.next<Uuid>();
  const claimed = await execute(context, webhookDeliveries, id, about, (state) =>
    decideWebhookDelivery(state, { type: 'ClaimAttempt', claimId, now: context.clock.now() }),
  );
  if ('refused' in claimed) throw new TypeError(`Delivery ${id} has no stream`);
  const { state } = claimed.entity;
  if (state.status !== 'pending') return scheduleOf(claimed.entity);
  if (state.next.status !== 'claimed' || state.next.claimId !== claimId) return scheduleOf(claimed.entity);
  await context.failpoint('webhook-attempt-claimed');
  const startedAt = context.clock.now();
  const begunMs = context.clock.monotonicMs();
  const { result, answer } = await send(context, delivery, state, signal);
  const durationMs = Math.max(0, Math.round(context.clock.monotonicMs() - begunMs));
  signal.throwIfAborted();
  await context.failpoint('webhook-attempt-sent');
  const { series } = state;
  const attempt = state.attempts + 1;
  // An attempt without an answer leaves none of an attempt before it.
  if (answer.length > 0 || series > 1 || attempt > 1) {
    const storedAt = context.clock.now();
    const { eventId } = state;
    await context.deliveries.putAnswer({ delivery: id, series, attempt, account, eventId, body: answer, storedAt });
  }
  const recorded = await execute(context, webhookDeliveries, id, about, (current) =>
    decideWebhookDelivery(current, { type: 'RecordAttempt', series, attempt, startedAt, durationMs, result }),
  );
  if ('refused' in recorded) throw new TypeError(`Delivery ${id} has no stream`);
  const { outcome, http_status: status, error } = statedResult(result);
  const { webhookId: webhook, eventId: event, repositoryId: repository } = state;
  context.log.info(
    { delivery: id, webhook, event, repository, account, series, attempt, outcome, status, error, durationMs },
    'Attempted a webhook delivery',
  );
  context.onAttempted(outcome, durationMs);
  await context.failpoint('webhook-attempt-recorded');
  return scheduleOf(recorded.entity);
}

function scheduleOf({ state, position }: Entity<WebhookDelivery>): DeliverySchedule {
  if (state.status !== 'pending') return { dueAt: null, isFirst: false, position };
  const { next, nextAttemptAt, series, attempts } = state;
  const dueAt = next.status === 'due' ? nextAttemptAt : null;
  return { dueAt, isFirst: series === 1 && attempts === 0, position };
}

interface Sent {
  readonly result: AttemptResult;
  /** The part of the answer's body that is kept. */
  readonly answer: Uint8Array;
}

const NOTHING = new Uint8Array(0);

function notSent(why: NotSent): Sent {
  return { result: { kind: 'not-sent', why }, answer: NOTHING };
}

/**
 * Sends the payload. An outage of Strata's own stores says nothing about the receiver, so it is thrown. Any other
 * unexpected error ends the delivery (docs/workflows.md, Webhook deliveries).
 */
async function send(
  context: AttemptContext,
  { id, account }: { readonly id: WebhookDeliveryId; readonly account: AccountId },
  state: PendingDelivery,
  signal: AbortSignal,
): Promise<Sent> {
  try {
    const prepared = await prepare(context, account, state);
    if ('why' in prepared) return notSent(prepared.why);
    const { url, payload, signatures } = prepared;
    const exchange: Exchange = await context.outgoing.send({
      url,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': context.agent,
        'x-service-event': state.event,
        'x-service-event-id': state.eventId,
        'x-service-delivery': id,
        ...signatures,
      },
      body: new TextEncoder().encode(payload),
      spanMs: WEBHOOK_ATTEMPT_SPAN_MS,
      answerBytesMax: WEBHOOK_ANSWER_BYTES_MAX,
      signal,
    });
    const answer = exchange.outcome === 'answered' ? exchange.body : NOTHING;
    return { result: resultOf(exchange, context.digest.sha256OfBytes), answer };
  } catch (error) {
    if (isOutage(error)) throw error;
    context.log.error({ err: error, delivery: id }, 'An attempt at a webhook delivery failed unexpectedly');
    return notSent('unexpected-error');
  }
}

type Prepared =
  | { readonly why: NotSent }
  | { readonly url: string; readonly payload: string; readonly signatures: Readonly<Record<string, string>> };

/**
 * The number of times that a webhook may change while it is being read. Internal: only changes during as many reads in
 * a row reach it.
 */
const READS_MAX = 10;

async function prepare(context: AttemptContext, account: AccountId, state: PendingDelivery): Promise<Prepared> {
  await context.entities.barrier();
  for (let read = 0; read < READS_MAX; read += 1) {
    const found = await findWebhook(context, { account, selection: ALL_REPOSITORIES }, state.webhookId);
    if ('refused' in found) return { why: 'webhook-deleted' };
    if (!found.webhook.active) return { why: 'webhook-inactive' };
    const payload = (await context.deliveries.payloads([state.eventId])).get(state.eventId);
    if (payload === undefined || context.digest.sha256(payload) !== state.payloadSha256) {
      throw new TypeError(`The payload of event ${state.eventId} is not stored any more`);
    }
    const signatures = await signaturesOf(context, account, found.webhook, payload);
    if (signatures !== null) return { url: found.url, payload, signatures };
    // The secret was removed after the webhook was read. The log holds the event that superseded it.
    await context.entities.reload(accounts, account);
  }
  throw new Error(`The vault has no secret of webhook ${state.webhookId}`);
}

/**
 * Returns the headers with the signatures that the current secrets make; null if the vault no longer holds one that is
 * needed.
 */
export async function signaturesOf(
  { vault, digest, clock }: Pick<AttemptContext, 'vault' | 'digest' | 'clock'>,
  account: AccountId,
  { secretRef, previousSecret }: Webhook,
  payload: string,
): Promise<Readonly<Record<string, string>> | null> {
  const secret = await vault.get(account, 'webhook-secret', secretRef);
  if (secret === null) return null;
  const signature = { 'x-service-signature': digest.hmacSha256(secret, payload) };
  if (previousSecret === null || previousSecret.validUntil <= clock.now()) return signature;
  const before = await vault.get(account, 'webhook-secret', previousSecret.ref);
  if (before === null) return null;
  return { ...signature, 'x-service-signature-previous': digest.hmacSha256(before, payload) };
}
