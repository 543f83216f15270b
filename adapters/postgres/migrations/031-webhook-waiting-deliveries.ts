/**
 * Webhook deliveries that are still to be made, one row for a push and a webhook (core/ports/waiting-deliveries.ts).
 *
 * Invariants: `keys` holds the first 32 bits of the id of each delivery of the row, those that were made included,
 * so that a delivery is found by its id without reading the pushes of all rows. Instants have the one form whose text
 * sorts as they do.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE webhook_waiting_deliveries (
      push_id uuid NOT NULL,
      webhook_id uuid NOT NULL,
      account_id uuid NOT NULL,
      stream text COLLATE "C" NOT NULL,
      revision integer NOT NULL,
      position bigint NOT NULL,
      created_at text COLLATE "C" NOT NULL,
      kinds text[] NOT NULL,
      passed integer NOT NULL,
      waiting integer NOT NULL,
      keys integer[] NOT NULL,
      PRIMARY KEY (push_id, webhook_id)
    )`.execute(db);
  await sql`
    CREATE INDEX webhook_waiting_deliveries_in_order ON webhook_waiting_deliveries (account_id, position)`.execute(db);
}
