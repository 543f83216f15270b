/** Which deliveries there are, and which are due, folded from the log at each question: the twin of the read model. */
import { categoryOf, entityIdOf, LOG_START } from '../../core/kernel/envelope.ts';
import { timestamp, uuid } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { DueDeliveries, PendingDeliveryRow, PendingWebhook, ReadModels } from '../../core/ports/read-models.ts';
import { foldDelivery, type StoredDelivery } from '../../projections/webhook-deliveries/fold.ts';

export function createMemoryDeliveries(
  events: Pick<EventStore, 'readAll'>,
): DueDeliveries & Pick<ReadModels, 'webhookDeliveries'> {
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
    seen: async () => undefined,
    webhookDeliveries: async (account, webhook, limit) =>
      (await rows())
        .filter((row) => row.account_id === account && row.webhook_id === webhook)
        .toReversed()
        .slice(0, limit)
        .map((row) => ({
          id: uuid(row.id),
          eventId: uuid(row.event_id),
          event: row.event,
          status: row.status,
          createdAt: timestamp(row.created_at),
          nextAttemptAt: row.next_attempt_at === null ? null : timestamp(row.next_attempt_at),
          attemptLog: row.attempt_log,
        })),
    pendingWebhooks: async () => {
      const least = new Map<string, PendingWebhook>();
      for (const { webhook_id, account_id, due_at } of await rows()) {
        if (due_at === null || account_id === null) continue;
        const known = least.get(webhook_id);
        if (known !== undefined && known.dueAt <= due_at) continue;
        least.set(webhook_id, { webhook: uuid(webhook_id), account: uuid(account_id), dueAt: timestamp(due_at) });
      }
      return [...least.values()];
    },
    pendingDeliveries: async (webhook, limit) => {
      const pending = (await rows()).flatMap((row): PendingDeliveryRow[] => {
        const { id, account_id, repository_id, is_first: isFirst, due_at } = row;
        if (row.webhook_id !== webhook || due_at === null || account_id === null) return [];
        const repository =
          repository_id === null ? null : uuid<NonNullable<PendingDeliveryRow['repository']>>(repository_id);
        return [{ id: uuid(id), account: uuid(account_id), repository, isFirst, dueAt: timestamp(due_at) }];
      });
      const others = pending.filter(({ isFirst }) => !isFirst).toSorted((a, b) => (a.dueAt < b.dueAt ? -1 : 1));
      return [...pending.filter(({ isFirst }) => isFirst).slice(0, limit), ...others.slice(0, limit)];
    },
    backlog: async () => {
      const pending = (await rows()).filter(({ due_at }) => due_at !== null);
      const oldest = pending.map(({ created_at }) => created_at).sort()[0];
      return { pending: pending.length, oldestAt: oldest === undefined ? null : timestamp(oldest) };
    },
  };
}
