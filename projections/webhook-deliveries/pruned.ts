/** The rows of deliveries, which go when their streams are pruned from the log. */
import { webhookDeliveries } from '../../core/webhook-delivery/evolve.ts';
import type { PrunableRows } from '../runner/pruned-rows.ts';
import { webhookDeliveriesProjection } from './apply.ts';

export const prunableDeliveries: PrunableRows = {
  model: webhookDeliveriesProjection,
  table: 'webhook_deliveries',
  firstKey: '00000000-0000-0000-0000-000000000000',
  page: (table, limit) => `SELECT id AS key, '${webhookDeliveries.category}-' || id AS stream FROM ${table}
    WHERE id > $1::uuid AND created_at < $2 ORDER BY id LIMIT ${limit}`,
  remove: (table) => `DELETE FROM ${table} WHERE id = ANY ($1::uuid[])`,
};
