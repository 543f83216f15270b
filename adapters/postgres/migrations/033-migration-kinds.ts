/**
 * Whether programs from before a migration may run on a database that has it (adapters/postgres/migrate.ts): an older
 * program reads this of each migration that it does not know.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE log_migration_kinds (
      name text PRIMARY KEY,
      kind text NOT NULL CHECK (kind IN ('expand', 'contract'))
    )`.execute(db);
}
