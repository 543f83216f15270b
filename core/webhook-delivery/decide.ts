/**
 * Decides the commands of a delivery.
 *
 * Invariants: every command is idempotent. A replayed request, a repeated record and a late record change nothing.
 * An attempt counts once, however often it was sent because of crashes.
 */
import { accept, type Decision, refuse } from '../kernel/decider.ts';
import { plusMs, type Timestamp } from '../kernel/ids.ts';
import { WEBHOOK_ATTEMPTS_MAX, WEBHOOK_SERIES_MAX } from '../kernel/limits.ts';
import { statedResult } from './attempt.ts';
import type { WebhookDeliveryCommand } from './commands.ts';
import type { WebhookDeliveryEvent } from './events.ts';
import type { PendingDelivery, WebhookDelivery } from './state.ts';

/** A claimed attempt without a recorded result is made again after this: longer than an attempt and its append take. */
export const WEBHOOK_CLAIM_SPAN_MS = 60_000;

export function decideWebhookDelivery(
  state: WebhookDelivery,
  command: WebhookDeliveryCommand,
): Decision<WebhookDeliveryEvent> {
  if (command.type === 'RequestDelivery') {
    return state.status === 'absent' ? accept(requested(command)) : accept<WebhookDeliveryEvent>();
  }
  if (state.status === 'absent') return refuse({ code: 'webhook-delivery-not-found' });
  switch (command.type) {
    case 'ClaimAttempt':
      return state.status === 'pending' ? decideClaim(state, command) : accept<WebhookDeliveryEvent>();
    case 'MakeAttemptDue':
      return state.status === 'pending' ? decideDue(state, command.now) : accept<WebhookDeliveryEvent>();
    case 'RecordAttempt': {
      const isNext = state.series === command.series && state.attempts + 1 === command.attempt;
      return state.status === 'pending' && isNext ? decideRecord(command) : accept<WebhookDeliveryEvent>();
    }
    case 'Redeliver':
      if (state.status === 'pending') return accept<WebhookDeliveryEvent>();
      if (state.series >= WEBHOOK_SERIES_MAX) return refuse({ code: 'webhook-redelivery-limit-reached' });
      return accept<WebhookDeliveryEvent>({
        type: 'WebhookRedelivered',
        data: { series: state.series + 1, not_before: command.notBefore },
      });
  }
}

function requested(command: Extract<WebhookDeliveryCommand, { type: 'RequestDelivery' }>): WebhookDeliveryEvent {
  const data = {
    webhook_id: command.webhookId,
    event_id: command.eventId,
    event: command.event,
    repository_id: command.repositoryId,
    payload_sha256: command.payloadSha256,
    not_before: command.notBefore,
  };
  return { type: 'WebhookDeliveryRequested', data };
}

function decideClaim(
  state: PendingDelivery,
  { claimId, now }: Extract<WebhookDeliveryCommand, { type: 'ClaimAttempt' }>,
): Decision<WebhookDeliveryEvent> {
  // The time is checked again: the clock of the node that made the attempt due may be ahead of this node's clock.
  if (state.next.status !== 'due' || state.nextAttemptAt > now) return accept<WebhookDeliveryEvent>();
  const { series, attempts } = state;
  const data = { series, attempt: attempts + 1, claim_id: claimId, until: plusMs(now, WEBHOOK_CLAIM_SPAN_MS) };
  return accept<WebhookDeliveryEvent>({ type: 'WebhookDeliveryAttemptClaimed', data });
}

function decideDue({ series, attempts, nextAttemptAt, next }: PendingDelivery, now: Timestamp) {
  const due: WebhookDeliveryEvent = {
    type: 'WebhookDeliveryAttemptFellDue',
    data: { series, attempt: attempts + 1 },
  };
  switch (next.status) {
    case 'due':
      return accept<WebhookDeliveryEvent>();
    case 'waiting':
      return nextAttemptAt <= now ? accept(due) : accept<WebhookDeliveryEvent>();
    case 'claimed':
      return next.until <= now ? accept(due) : accept<WebhookDeliveryEvent>();
  }
}

function decideRecord(
  command: Extract<WebhookDeliveryCommand, { type: 'RecordAttempt' }>,
): Decision<WebhookDeliveryEvent> {
  const { series, attempt, startedAt, durationMs, result } = command;
  const stated = statedResult(result);
  const attempted: WebhookDeliveryEvent = {
    type: 'WebhookDeliveryAttempted',
    data: { series, attempt, started_at: startedAt, duration_ms: durationMs, ...stated },
  };
  switch (stated.outcome) {
    case 'succeeded':
      return accept<WebhookDeliveryEvent>(attempted, { type: 'WebhookDeliverySucceeded', data: { series } });
    case 'failed':
      if (attempt < WEBHOOK_ATTEMPTS_MAX) return accept(attempted);
      return accept<WebhookDeliveryEvent>(attempted, { type: 'WebhookDeliveryFailed', data: { series } });
    case 'refused':
      return accept<WebhookDeliveryEvent>(attempted, { type: 'WebhookDeliveryFailed', data: { series } });
  }
}
