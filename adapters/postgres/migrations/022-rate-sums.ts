/** What nodes tell each other of the rates that each counts (core/ports/rate-sums.ts). A crash may empty the table. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE UNLOGGED TABLE rate_sums (
      name text COLLATE "C" NOT NULL,
      span bigint NOT NULL,
      key text COLLATE "C" NOT NULL,
      node text COLLATE "C" NOT NULL,
      amount bigint NOT NULL,
      ends_at bigint NOT NULL,
      PRIMARY KEY (name, span, key, node)
    )`.execute(db);
}
