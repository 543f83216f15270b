/**
 * Which pushes webhooks were notified of (core/ports/notified-pushes.ts): one row, with the accounts whose pushes are
 * not done. A purge asks it for one account.
 *
 * Invariants: there is one row. The positions in it are those of the log that the policy follows. An older version
 * kept only the policy's mark, up to which every push was done: a purge that comes before the policy starts goes by it.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE webhook_notified_pushes (
      is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
      reached bigint NOT NULL,
      undone jsonb NOT NULL
    )`.execute(db);
  await sql`
    INSERT INTO webhook_notified_pushes (reached, undone)
    SELECT position, '{}' FROM policy_marks WHERE policy = 'webhook-notifications'`.execute(db);
}
