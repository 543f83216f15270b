/**
 * What is known of the references to vault records: which some event names, and how much of the log that covers.
 *
 * Must stay true: `named` is never unset, and `vault_read_mark` moves in the statement that sets it.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE vault_records ADD COLUMN named boolean NOT NULL DEFAULT false`.execute(db);
  // Few records are not named, and not for long.
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
