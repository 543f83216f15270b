/**
 * The sessions of browsers (core/ports/session-store.ts). Nothing in the log depends on them.
 *
 * Invariants: the table holds a digest of each session's id, never the id. Addresses and browsers are vault
 * references, so the erasure of an account makes them unreadable.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE web_sessions (
      id_hash text COLLATE "C" PRIMARY KEY,
      handle uuid NOT NULL,
      account_id uuid NOT NULL,
      epoch integer NOT NULL,
      status text NOT NULL,
      kept jsonb NOT NULL,
      created_at text COLLATE "C" NOT NULL,
      seen_at text COLLATE "C" NOT NULL,
      expires_at text COLLATE "C" NOT NULL,
      address_ref text,
      agent_ref text
    )`.execute(db);
  await sql`CREATE INDEX web_sessions_by_account ON web_sessions (account_id, status, created_at)`.execute(db);
  await sql`CREATE INDEX web_sessions_by_expiry ON web_sessions (expires_at)`.execute(db);
}
