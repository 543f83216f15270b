/**
 * Notifies the dispatcher of deliveries' events.
 *
 * Invariants: it reports every event that makes an attempt due, whichever process appended it.
 */
import { readEvent } from '../../core/kernel/decider.ts';
import { entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { uuid, type WebhookDeliveryId, type WebhookId } from '../../core/kernel/ids.ts';
import type { Entities } from '../../core/runtime/entities.ts';
import { type WebhookDeliveryEvent, webhookDeliveryEventKinds } from '../../core/webhook-delivery/events.ts';
import { webhookDeliveries } from '../../core/webhook-delivery/evolve.ts';
import type { DeliveryEntry, Dispatcher } from './dispatcher.ts';

/** Handles a batch of deliveries' events in log order. */
export async function onDeliveryEvents(
  entities: Pick<Entities, 'get'>,
  dispatcher: Pick<Dispatcher, 'due' | 'recorded'>,
  batch: readonly RecordedEvent[],
): Promise<void> {
  for (const recorded of batch) {
    const event = readEvent<WebhookDeliveryEvent>(webhookDeliveryEventKinds, recorded);
    switch (event.type) {
      case 'WebhookDeliveryRequested': {
        const webhook = uuid<WebhookId>(event.data.webhook_id);
        const { accountId: account, position } = recorded;
        const isDue = event.data.not_before === null;
        if (isDue && account !== null) dispatcher.due({ id: idOf(recorded), webhook, account, position }, 'first');
        break;
      }
      case 'WebhookRedelivered': {
        const entry = event.data.not_before === null ? await deliveryEntry(entities, recorded) : null;
        if (entry !== null) dispatcher.due(entry, 'later');
        break;
      }
      case 'WebhookDeliveryAttemptFellDue': {
        const entry = await deliveryEntry(entities, recorded);
        if (entry !== null) dispatcher.due(entry, isFirst(event.data) ? 'claimed' : 'later');
        break;
      }
      case 'WebhookDeliveryAttempted': {
        const entry = isFirst(event.data) ? await deliveryEntry(entities, recorded) : null;
        if (entry !== null) dispatcher.recorded(entry);
        break;
      }
      case 'WebhookDeliveryAttemptClaimed':
      case 'WebhookDeliverySucceeded':
      case 'WebhookDeliveryFailed':
        break;
    }
  }
}

/** Returns whether this is the first attempt of the first series: only these are made in the order of the pushes. */
function isFirst({ series, attempt }: { readonly series: number; readonly attempt: number }): boolean {
  return series === 1 && attempt === 1;
}

function idOf({ stream }: RecordedEvent): WebhookDeliveryId {
  return uuid<WebhookDeliveryId>(entityIdOf(stream));
}

async function deliveryEntry(entities: Pick<Entities, 'get'>, recorded: RecordedEvent): Promise<DeliveryEntry | null> {
  const { accountId, position } = recorded;
  const id = idOf(recorded);
  const { state } = await entities.get(webhookDeliveries, id);
  return state.status === 'absent' || accountId === null
    ? null
    : { id, webhook: state.webhookId, account: accountId, position };
}
