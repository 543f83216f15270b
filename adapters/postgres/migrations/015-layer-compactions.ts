/** The repositories that are to be compacted (core/ports/layer-compactions.ts). */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Instants have the one form whose text sorts as they do. `told` names the engine that knows of the row.
  await sql`
    CREATE TABLE layer_compactions (
      id uuid PRIMARY KEY,
      account uuid NOT NULL,
      due_at text COLLATE "C" NOT NULL,
      revision integer NOT NULL DEFAULT 0,
      told text
    )`.execute(db);
  await sql`CREATE INDEX layer_compactions_due ON layer_compactions (due_at, id)`.execute(db);
}
