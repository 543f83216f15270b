/**
 * Which version of each type of event is written, and processes that have ended: they count among those of the last ten
 * minutes (core/ports/running-processes.ts).
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE written_events (
      type text PRIMARY KEY,
      version integer NOT NULL
    )`.execute(db);
  await sql`ALTER TABLE running_processes ADD COLUMN ended boolean NOT NULL DEFAULT false`.execute(db);
}
