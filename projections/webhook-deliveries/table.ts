/** The table of deliveries and of which are due: one row for each delivery. */
import type { ProjectionTable } from '../runner/projection.ts';

/**
 * `due_since` is set while the next attempt may be claimed; it is null while the attempt waits or is claimed, or if
 * there is none. `deferred_until` is set while the account's budget makes the first attempt of a series wait.
 * `is_first` is true until the first attempt was recorded: first attempts are made in the order of `position`, which is
 * that of the delivery's request. `attempt_log` holds the attempts of all series.
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
        due_since text COLLATE "C",
        deferred_until text COLLATE "C",
        is_first boolean NOT NULL,
        attempt_log json NOT NULL,
        position bigint NOT NULL)`,
      `CREATE INDEX ON ${table} (webhook_id, position)`,
      `CREATE INDEX ON ${table} (webhook_id, position) WHERE is_first`,
      `CREATE INDEX ON ${table} (webhook_id, due_since, position) WHERE due_since IS NOT NULL`,
      `CREATE INDEX ON ${table} (created_at) WHERE status = 'PENDING'`,
      `CREATE INDEX ON ${table} (account_id) WHERE status = 'PENDING'`,
    ],
  },
];
