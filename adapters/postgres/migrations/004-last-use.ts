/** When tokens were last used. A rebuild neither drops nor compares the table (docs/architecture.md, invariant 1). */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE TABLE token_last_use (token_id uuid PRIMARY KEY, used_at text NOT NULL)`.execute(db);
}
