/** The repositories whose manifest is to be written (core/ports/manifest-writes.ts). */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Instants have the one form whose text sorts as they do. `told` names the engine that knows of the row.
  await sql`
    CREATE TABLE manifest_writes (
      id uuid PRIMARY KEY,
      account uuid NOT NULL,
      due_at text COLLATE "C" NOT NULL,
      failures integer NOT NULL DEFAULT 0,
      revision integer NOT NULL DEFAULT 0,
      told text
    )`.execute(db);
  await sql`CREATE INDEX manifest_writes_due ON manifest_writes (due_at, id)`.execute(db);
}
