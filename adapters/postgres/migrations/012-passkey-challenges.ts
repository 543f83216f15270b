/**
 * The challenges that browsers were given for passkeys and have not answered yet.
 *
 * Invariants: the primary key bounds the rows of an account by the number of slots.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE passkey_challenges (
      account_id uuid NOT NULL,
      slot integer NOT NULL,
      purpose text NOT NULL,
      challenge text NOT NULL,
      expires_at timestamptz NOT NULL,
      PRIMARY KEY (account_id, slot)
    )`.execute(db);
  await sql`CREATE INDEX passkey_challenges_by_end ON passkey_challenges (expires_at)`.execute(db);
}
