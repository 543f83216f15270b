/** The in-memory counterpart of the read model of webhook deliveries: folds the whole log at each read. */
import { categoryOf, entityIdOf, LOG_START } from '../../../core/kernel/envelope.ts';
import { timestamp, uuid } from '../../../core/kernel/ids.ts';
import type {
  DueDeliveries,
  DueDeliveryRow,
  DueWebhook,
  EndedDeliveries,
  PendingDeliveries,
} from '../../../core/ports/due-deliveries.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { WebhookDeliveryLists, WebhookDeliveryRow } from '../../../core/ports/webhook-delivery-lists.ts';
import { foldDelivery, type StoredDelivery } from '../../../projections/webhook-deliveries/fold.ts';

export function createMemoryDeliveries(
  events: Pick<EventStore, 'readAll'>,
): DueDeliveries & PendingDeliveries & EndedDeliveries & WebhookDeliveryLists {
  async function rows(): Promise<readonly StoredDelivery[]> {
    const found = new Map<string, StoredDelivery>();
    for (const event of await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)) {
      if (categoryOf(event.stream) !== 'webhookDelivery') continue;
      const id = entityIdOf(event.stream);
      found.set(id, foldDelivery(found.get(id) ?? null, event));
    }
    return [...found.values()];
  }
  return {
    deliveriesCaughtUp: async () => undefined,
    webhookDeliveries: async (account, webhook, limit) =>
      (await rows())
        .filter((row) => row.account_id === account && row.webhook_id === webhook)
        .toReversed()
        .slice(0, limit)
        .map(deliveryRow),
    webhookDelivery: async (account, webhook, delivery) => {
      const row = (await rows()).find(({ id }) => id === delivery);
      return row?.account_id === account && row.webhook_id === webhook ? deliveryRow(row) : null;
    },
    dueWebhooks: async () => {
      const due = new Map<string, DueWebhook>();
      for (const { webhook_id, account_id, due_since } of await rows()) {
        if (due_since === null || account_id === null) continue;
        due.set(webhook_id, { webhook: uuid(webhook_id), account: uuid(account_id) });
      }
      return [...due.values()];
    },
    dueDeliveries: async (webhook, limit) => {
      const found = (await rows()).filter((row) => row.webhook_id === webhook);
      const firsts = found.filter((row) => row.is_first);
      const others = found.filter((row) => !row.is_first && row.due_since !== null);
      const oldest = others.toSorted((a, b) => ((a.due_since ?? '') < (b.due_since ?? '') ? -1 : 1));
      return [...firsts.slice(0, limit), ...oldest.slice(0, limit)].map(dueRow);
    },
    pendingOfAccount: async (account, limit) =>
      (await rows()).filter((row) => row.account_id === account && row.status === 'PENDING').slice(0, limit).length,
    pendingAmong: async (account, events, deliveries) => {
      const pending = (await rows()).filter((row) => row.account_id === account && row.status === 'PENDING');
      const ids = new Set(pending.map(({ id }) => id));
      const notifications = new Set(pending.map(({ event_id }) => event_id));
      return {
        events: new Set(events.filter((event) => notifications.has(event))),
        deliveries: new Set(deliveries.filter((id) => ids.has(id))),
      };
    },
    backlog: async () => {
      const pending = (await rows()).filter(({ status }) => status === 'PENDING');
      const oldest = pending.map(({ created_at }) => created_at).sort()[0];
      return { pending: pending.length, oldestAt: oldest === undefined ? null : timestamp(oldest) };
    },
  };
}

function dueRow({ id, account_id, repository_id, is_first: isFirst, due_since }: StoredDelivery): DueDeliveryRow {
  if (account_id === null) throw new TypeError(`Delivery ${id} has no account`);
  const repository = repository_id === null ? null : uuid<NonNullable<DueDeliveryRow['repository']>>(repository_id);
  return { id: uuid(id), account: uuid(account_id), repository, isFirst, isDue: due_since !== null };
}

function deliveryRow(row: StoredDelivery): WebhookDeliveryRow {
  return {
    id: uuid(row.id),
    eventId: uuid(row.event_id),
    event: row.event,
    status: row.status,
    createdAt: timestamp(row.created_at),
    nextAttemptAt: row.next_attempt_at === null ? null : timestamp(row.next_attempt_at),
    deferredUntil: row.deferred_until === null ? null : timestamp(row.deferred_until),
    attemptLog: row.attempt_log,
  };
}
