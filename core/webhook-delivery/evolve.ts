/** Folds a delivery's events. */
import type { Decider } from '../kernel/decider.ts';
import { type Timestamp, timestamp, uuid } from '../kernel/ids.ts';
import { retryAt } from './attempt.ts';
import { type WebhookDeliveryEvent, webhookDeliveryEventKinds } from './events.ts';
import type { DeliveryFacts, PendingDelivery, WebhookDelivery } from './state.ts';

const DUE = { status: 'due' } as const;

function evolveWebhookDelivery(state: WebhookDelivery, event: WebhookDeliveryEvent, at: Timestamp): WebhookDelivery {
  switch (event.type) {
    case 'WebhookDeliveryRequested': {
      const { webhook_id, event_id, event: kind, repository_id, payload_sha256: payloadSha256 } = event.data;
      const repositoryId =
        repository_id === null ? null : uuid<NonNullable<DeliveryFacts['repositoryId']>>(repository_id);
      const about = {
        webhookId: uuid<DeliveryFacts['webhookId']>(webhook_id),
        event: kind,
        repositoryId,
        payloadSha256,
      };
      const eventId = uuid<DeliveryFacts['eventId']>(event_id);
      return { status: 'pending', ...about, eventId, series: 1, attempts: 0, ...firstAttempt(event.data, at) };
    }
    case 'WebhookDeliveryAttemptClaimed': {
      const { claim_id, until } = event.data;
      const next = { status: 'claimed', claimId: uuid(claim_id), until: timestamp(until) } as const;
      return { ...pending(state), next };
    }
    case 'WebhookDeliveryAttempted': {
      const before = pending(state);
      // After the last attempt there is no next one: the event that ends the delivery follows in the same append.
      const nextAttemptAt = retryAt(event.data) ?? before.nextAttemptAt;
      return { ...before, attempts: event.data.attempt, nextAttemptAt, next: { status: 'waiting' } };
    }
    case 'WebhookDeliveryAttemptFellDue':
      return { ...pending(state), next: DUE };
    case 'WebhookDeliverySucceeded':
      return ended(pending(state), 'succeeded');
    case 'WebhookDeliveryFailed':
      return ended(pending(state), 'failed');
    case 'WebhookRedelivered': {
      if (state.status !== 'succeeded' && state.status !== 'failed') {
        throw new TypeError(`WebhookRedelivered of a delivery that is ${state.status}`);
      }
      const { series } = event.data;
      return { ...state, status: 'pending', series, attempts: 0, ...firstAttempt(event.data, at) };
    }
  }
}

/** When the first attempt of a series may be made. */
function firstAttempt(
  { not_before }: { readonly not_before: string | null },
  at: Timestamp,
): Pick<PendingDelivery, 'nextAttemptAt' | 'next'> {
  if (not_before === null) return { nextAttemptAt: at, next: DUE };
  return { nextAttemptAt: timestamp(not_before), next: { status: 'waiting' } };
}

function pending(state: WebhookDelivery): PendingDelivery {
  if (state.status !== 'pending') throw new TypeError(`An event for a delivery that is ${state.status}`);
  return state;
}

function ended(state: PendingDelivery, status: 'succeeded' | 'failed'): WebhookDelivery {
  const { nextAttemptAt: _, next: __, ...facts } = state;
  return { ...facts, status };
}

export const webhookDeliveries: Decider<WebhookDelivery, WebhookDeliveryEvent> = {
  category: 'webhookDelivery',
  kinds: webhookDeliveryEventKinds,
  initial: { status: 'absent' },
  evolve: evolveWebhookDelivery,
  snapshots: null,
  sizeBytes: (state) => (state.status === 'absent' ? 100 : 800),
};
