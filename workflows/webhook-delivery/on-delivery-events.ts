/**
 * Tells the dispatcher what the log says of deliveries.
 *
 * Must stay true: whatever makes an attempt due is told, whichever process wrote it.
 */
import { entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { uuid, type WebhookDeliveryId, type WebhookId } from '../../core/kernel/ids.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import type { Entities } from '../../core/runtime/entities.ts';
import { type WebhookDeliveryEvent, webhookDeliveryEventKinds } from '../../core/webhook-delivery/events.ts';
import { webhookDeliveries } from '../../core/webhook-delivery/evolve.ts';
import type { Dispatcher, HeardDelivery } from './dispatcher.ts';

/** Takes events of deliveries in log order. */
export async function hear(
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
        if (account !== null) dispatcher.due({ id: idOf(recorded), webhook, account, position }, 'first');
        break;
      }
      case 'WebhookRedelivered': {
        const heard = await heardDelivery(entities, recorded);
        if (heard !== null) dispatcher.due(heard, 'later');
        break;
      }
      case 'WebhookDeliveryAttemptFellDue': {
        const heard = await heardDelivery(entities, recorded);
        if (heard !== null) dispatcher.due(heard, isFirst(event.data) ? 'claimed' : 'later');
        break;
      }
      case 'WebhookDeliveryAttempted': {
        const heard = isFirst(event.data) ? await heardDelivery(entities, recorded) : null;
        if (heard !== null) dispatcher.recorded(heard);
        break;
      }
      case 'WebhookDeliveryAttemptClaimed':
      case 'WebhookDeliverySucceeded':
      case 'WebhookDeliveryFailed':
        break;
    }
  }
}

/** Of all its series: only these go in the order of the pushes. */
function isFirst({ series, attempt }: { readonly series: number; readonly attempt: number }): boolean {
  return series === 1 && attempt === 1;
}

function idOf({ stream }: RecordedEvent): WebhookDeliveryId {
  return uuid<WebhookDeliveryId>(entityIdOf(stream));
}

async function heardDelivery(entities: Pick<Entities, 'get'>, recorded: RecordedEvent): Promise<HeardDelivery | null> {
  const { accountId, position } = recorded;
  const id = idOf(recorded);
  const { state } = await entities.get(webhookDeliveries, id);
  return state.status === 'absent' || accountId === null
    ? null
    : { id, webhook: state.webhookId, account: accountId, position };
}
