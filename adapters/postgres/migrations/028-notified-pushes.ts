/**
 * Which pushes webhooks were notified of (core/ports/notified-pushes.ts): one row, with the accounts whose pushes are not
 * done. A purge asks it for one account.
 *
 * Must stay true: there is one row. The positions in it are those of the log that the policy follows.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE webhook_notified_pushes (
      is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
      reached bigint NOT NULL,
      undone jsonb NOT NULL
    )`.execute(db);
}
