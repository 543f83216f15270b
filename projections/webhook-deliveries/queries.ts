/** The queries of a webhook's deliveries, for REST, and of due deliveries, for the dispatcher. */
import type { AccountId, EventId, Timestamp, WebhookDeliveryId, WebhookId } from '../../core/kernel/ids.ts';
import type { DueDeliveryRow, DueWebhook, EndedDeliveries } from '../../core/ports/due-deliveries.ts';
import type { WebhookDeliveryRow } from '../../core/ports/webhook-delivery-lists.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';

const DELIVERY_COLUMNS = `id, event_id AS "eventId", event, status, created_at AS "createdAt",
  next_attempt_at AS "nextAttemptAt", deferred_until AS "deferredUntil", attempt_log AS "attemptLog"`;

const deliveriesQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(delivery), '[]') FROM (
    SELECT ${DELIVERY_COLUMNS}
    FROM ${table('webhook_deliveries')}
    WHERE webhook_id = $1 AND account_id = $2
    ORDER BY position DESC LIMIT $3) AS delivery`,
};

export async function readWebhookDeliveries(
  reader: LiveReader,
  account: AccountId,
  webhook: WebhookId,
  limit: number,
): Promise<readonly WebhookDeliveryRow[]> {
  const { value } = await reader.read(deliveriesQuery, [webhook, account, limit], () => ({ account }));
  return value as readonly WebhookDeliveryRow[];
}

const deliveryQuery: ReadQuery = {
  answer: (table) => `SELECT row_to_json(delivery) FROM (
    SELECT ${DELIVERY_COLUMNS}
    FROM ${table('webhook_deliveries')}
    WHERE id = $3 AND webhook_id = $1 AND account_id = $2) AS delivery`,
};

export async function readWebhookDelivery(
  reader: LiveReader,
  account: AccountId,
  webhook: WebhookId,
  delivery: WebhookDeliveryId,
): Promise<WebhookDeliveryRow | null> {
  const { value } = await reader.read(deliveryQuery, [webhook, account, delivery], () => ({ account }));
  return value as WebhookDeliveryRow | null;
}

const dueWebhooksQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(due), '[]') FROM (
    SELECT DISTINCT webhook_id AS webhook, account_id AS account
    FROM ${table('webhook_deliveries')} WHERE due_since IS NOT NULL) AS due`,
};

const NO_CONCERNS = { streams: [] } as const;

export async function readDueWebhooks(reader: LiveReader): Promise<readonly DueWebhook[]> {
  // A parked delivery waits for an operator; the other deliveries do not wait for it.
  return (await reader.read(dueWebhooksQuery, [], () => NO_CONCERNS)).value as readonly DueWebhook[];
}

const dueQuery: ReadQuery = {
  answer: (table) => {
    const columns = `id, account_id AS account, repository_id AS repository, is_first AS "isFirst",
      due_since IS NOT NULL AS "isDue"`;
    const from = `FROM ${table('webhook_deliveries')} WHERE webhook_id = $1`;
    return `SELECT coalesce(json_agg(delivery), '[]') FROM (
      (SELECT ${columns} ${from} AND is_first ORDER BY position LIMIT $2)
      UNION ALL
      (SELECT ${columns} ${from} AND due_since IS NOT NULL AND NOT is_first
       ORDER BY due_since, position LIMIT $2)) AS delivery`;
  },
};

export async function readDueDeliveries(
  reader: LiveReader,
  webhook: WebhookId,
  limit: number,
): Promise<readonly DueDeliveryRow[]> {
  return (await reader.read(dueQuery, [webhook, limit], () => NO_CONCERNS)).value as readonly DueDeliveryRow[];
}

const backlogQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('pending', count(*), 'oldestAt', min(created_at))
    FROM ${table('webhook_deliveries')} WHERE status = 'PENDING'`,
};

export async function readDeliveryBacklog(
  reader: LiveReader,
): Promise<{ readonly pending: number; readonly oldestAt: Timestamp | null }> {
  const { value } = await reader.read(backlogQuery, [], () => NO_CONCERNS);
  return value as { readonly pending: number; readonly oldestAt: Timestamp | null };
}

const pendingAmongQuery: ReadQuery = {
  answer: (
    table,
  ) => `SELECT coalesce(json_agg(json_build_array(event_id, id)), '[]') FROM ${table('webhook_deliveries')}
    WHERE account_id = $1 AND status = 'PENDING' AND (event_id = ANY ($2::uuid[]) OR id = ANY ($3::uuid[]))`,
};

export async function readPendingAmong(
  reader: LiveReader,
  ...[account, events, deliveries]: Parameters<EndedDeliveries['pendingAmong']>
): ReturnType<EndedDeliveries['pendingAmong']> {
  const { value } = await reader.read(pendingAmongQuery, [account, events, deliveries], () => NO_CONCERNS);
  const rows = value as readonly (readonly [EventId, WebhookDeliveryId])[];
  return { events: new Set(rows.map(([event]) => event)), deliveries: new Set(rows.map(([, id]) => id)) };
}

const pendingQuery: ReadQuery = {
  answer: (table) => `SELECT count(*) FROM (SELECT FROM ${table('webhook_deliveries')}
    WHERE account_id = $1 AND status = 'PENDING' LIMIT $2) AS pending`,
};

export async function readPendingOfAccount(reader: LiveReader, account: AccountId, limit: number): Promise<number> {
  return (await reader.read(pendingQuery, [account, limit], () => NO_CONCERNS)).value as number;
}
