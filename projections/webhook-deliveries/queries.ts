/** The deliveries of a webhook as REST lists them, and what is due as the dispatcher asks. */
import type { AccountId, Timestamp, WebhookId } from '../../core/kernel/ids.ts';
import type { PendingDeliveryRow, PendingWebhook, WebhookDeliveryRow } from '../../core/ports/read-models.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';

const deliveriesQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(delivery), '[]') FROM (
    SELECT id, event_id AS "eventId", event, status, created_at AS "createdAt", next_attempt_at AS "nextAttemptAt",
      attempt_log AS "attemptLog"
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

const pendingWebhooksQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(pending), '[]') FROM (
    SELECT webhook_id AS webhook, account_id AS account, min(due_at) AS "dueAt"
    FROM ${table('webhook_deliveries')} WHERE due_at IS NOT NULL
    GROUP BY webhook_id, account_id) AS pending`,
};

const NO_CONCERNS = { streams: [] } as const;

export async function readPendingWebhooks(reader: LiveReader): Promise<readonly PendingWebhook[]> {
  // A parked delivery waits for its operator; the others do not wait with it.
  return (await reader.read(pendingWebhooksQuery, [], () => NO_CONCERNS)).value as readonly PendingWebhook[];
}

const pendingQuery: ReadQuery = {
  answer: (table) => {
    const columns = `id, account_id AS account, repository_id AS repository, is_first AS "isFirst", due_at AS "dueAt",
      CASE WHEN is_first THEN position ELSE 0 END AS place`;
    const from = `FROM ${table('webhook_deliveries')} WHERE webhook_id = $1 AND due_at IS NOT NULL`;
    return `SELECT coalesce(json_agg(delivery ORDER BY "isFirst" DESC, place, "dueAt"), '[]') FROM (
      (SELECT ${columns} ${from} AND is_first ORDER BY position LIMIT $2)
      UNION ALL
      (SELECT ${columns} ${from} AND NOT is_first ORDER BY due_at LIMIT $2)) AS delivery`;
  },
};

export async function readPendingDeliveries(
  reader: LiveReader,
  webhook: WebhookId,
  limit: number,
): Promise<readonly PendingDeliveryRow[]> {
  return (await reader.read(pendingQuery, [webhook, limit], () => NO_CONCERNS)).value as readonly PendingDeliveryRow[];
}

const backlogQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('pending', count(*), 'oldestAt', min(created_at))
    FROM ${table('webhook_deliveries')} WHERE due_at IS NOT NULL`,
};

export async function readDeliveryBacklog(
  reader: LiveReader,
): Promise<{ readonly pending: number; readonly oldestAt: Timestamp | null }> {
  const { value } = await reader.read(backlogQuery, [], () => NO_CONCERNS);
  return value as { readonly pending: number; readonly oldestAt: Timestamp | null };
}
