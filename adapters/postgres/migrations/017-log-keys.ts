/**
 * The keys that sign checkpoints of accounts' logs.
 *
 * Invariants: the primary key lets one node win that adds a generation. The content is sealed as a whole, so that
 * only who holds the master key can add or change a key. Rows are never removed.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE log_keys (
      generation integer PRIMARY KEY,
      sealed bytea NOT NULL,
      added_at timestamptz NOT NULL DEFAULT now()
    )`.execute(db);
}
