/** How far the verification in the background has walked (core/ports/verification-walks.ts). */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE verification_walks (
      walk text PRIMARY KEY,
      process uuid,
      held_until timestamptz,
      begun_at text,
      cursor text,
      whole_since text
    )`.execute(db);
}
