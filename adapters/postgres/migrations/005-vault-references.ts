/**
 * Which vault records are named by an event, and up to which event the log was read to find that out.
 *
 * Invariants: `named` is never set back to false, and the statement that sets it also moves `vault_read_mark`.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE vault_records ADD COLUMN named boolean NOT NULL DEFAULT false`.execute(db);
  // These indexes stay small: a record is soon named by an event or removed.
  await sql`CREATE INDEX vault_records_unnamed_by_ref ON vault_records (ref) WHERE NOT named`.execute(db);
  await sql`CREATE INDEX vault_records_unnamed_by_age ON vault_records (put_at) WHERE NOT named`.execute(db);
  await sql`
    CREATE TABLE vault_read_mark (
      only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
      position bigint NOT NULL,
      stream text COLLATE "C" NOT NULL,
      revision integer NOT NULL,
      event_id uuid NOT NULL
    )`.execute(db);
}
