/**
 * The waits of a delivery as a workflow: for the account's budget, after a failed attempt, and for a claim whose
 * process may have died.
 *
 * Invariants: it decides times and nothing else. The dispatcher itself takes from the log what is due without a wait,
 * after the request or a redelivery, and the read model lists that until it is claimed. So a first attempt within the
 * budget needs no engine.
 */
import { readEvent } from '../../core/kernel/decider.ts';
import { type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import type { Wait, Workflow } from '../../core/ports/workflows.ts';
import { retryAt } from '../../core/webhook-delivery/attempt.ts';
import { type WebhookDeliveryEvent, webhookDeliveryEventKinds } from '../../core/webhook-delivery/events.ts';
import { webhookDeliveries } from '../../core/webhook-delivery/evolve.ts';

export type WebhookDeliveryStep = 'due';

export const webhookDelivery: Workflow<WebhookDeliveryStep> = {
  name: 'webhook-delivery',
  version: 1,
  category: webhookDeliveries.category,
  next(_wait, recorded) {
    const event = readEvent<WebhookDeliveryEvent>(webhookDeliveryEventKinds, recorded);
    switch (event.type) {
      case 'WebhookDeliveryAttemptClaimed':
        return dueAt(timestamp(event.data.until));
      case 'WebhookDeliveryAttempted':
        return event.data.outcome === 'failed' ? dueAt(retryAt(event.data)) : null;
      case 'WebhookDeliveryRequested':
      case 'WebhookRedelivered':
        return event.data.not_before === null ? null : dueAt(timestamp(event.data.not_before));
      case 'WebhookDeliveryAttemptFellDue':
      case 'WebhookDeliverySucceeded':
      case 'WebhookDeliveryFailed':
        return null;
    }
  },
};

const NOTHING = {};

function dueAt(at: Timestamp | null): Wait<WebhookDeliveryStep> | null {
  return at === null ? null : { step: 'due', dueAt: at, memory: NOTHING };
}
