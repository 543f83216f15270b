/** The table that deliveries are listed from, and that says which are due: one row for each. */
import type { ProjectionTable } from '../runner/projection.ts';

/**
 * `due_at` is when the next attempt may be made, or a claimed one made again; null once it has ended. `is_first` until the
 * first attempt was recorded: these are made in the order of `position`, where the delivery was requested.
 * `attempt_log` holds the attempts of all series.
 */
export const webhookDeliveryTables: readonly ProjectionTable[] = [
  {
    name: 'webhook_deliveries',
    key: ['id'],
    compare: 'exact',
    create: (table) => [
      `CREATE TABLE ${table} (
        id uuid PRIMARY KEY,
        account_id uuid NOT NULL,
        webhook_id uuid NOT NULL,
        event_id uuid NOT NULL,
        event text NOT NULL,
        repository_id uuid,
        status text NOT NULL,
        series integer NOT NULL,
        created_at text COLLATE "C" NOT NULL,
        next_attempt_at text COLLATE "C",
        due_at text COLLATE "C",
        is_first boolean NOT NULL,
        attempt_log json NOT NULL,
        position bigint NOT NULL)`,
      `CREATE INDEX ON ${table} (webhook_id, position)`,
      `CREATE INDEX ON ${table} (webhook_id, position) WHERE due_at IS NOT NULL AND is_first`,
      `CREATE INDEX ON ${table} (webhook_id, due_at) WHERE due_at IS NOT NULL AND NOT is_first`,
      `CREATE INDEX ON ${table} (created_at) WHERE due_at IS NOT NULL`,
    ],
  },
];
