/**
 * Under which master keys rotations wrapped each account's data key again, oldest first, so that its log says so
 * (core/use-cases/auditing/record-rotations.ts).
 *
 * Invariants: what was rotated before this column is not in it, nor what an older version's command rotates.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE vault_keys ADD COLUMN rotations text[] NOT NULL DEFAULT '{}'`.execute(db);
}
