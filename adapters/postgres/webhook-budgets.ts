/** The budgets of webhook deliveries on PostgreSQL (core/ports/webhook-budgets.ts). */
import type pg from 'pg';
import { timestamp } from '../../core/kernel/ids.ts';
import { DeliveryStoreError } from '../../core/ports/delivery-store.ts';
import type { WebhookBudgets } from '../../core/ports/webhook-budgets.ts';
import { queryReporting, unavailable } from './outages.ts';

const query = queryReporting(unavailable(DeliveryStoreError, 'delivery-store-unavailable'));

interface PartRow {
  readonly hour: string;
  readonly first: number;
  readonly count: number;
}

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresWebhookBudgets(pool: pg.Pool): WebhookBudgets {
  return {
    async take(account, { hours, count, perHour }) {
      if (count === 0) return [];
      const text = 'SELECT hour, first, count FROM take_webhook_budget($1, $2::text[], $3, $4)';
      const { rows } = await query<PartRow>(pool, text, [account, hours, count, perHour]);
      if (rows.length === 0) return null;
      return rows.map(({ hour, ...numbers }) => ({ hour: timestamp(hour), ...numbers }));
    },
    async taken(account, hour) {
      const text = 'SELECT taken FROM webhook_budgets WHERE account_id = $1 AND hour = $2';
      return (await query<{ taken: number }>(pool, text, [account, hour])).rows[0]?.taken ?? 0;
    },
    async removeBefore(hour) {
      await query(pool, 'DELETE FROM webhook_budgets WHERE hour < $1', [hour]);
    },
  };
}
