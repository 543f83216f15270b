/**
 * The bodies that deliveries sent and those that receivers answered, kept for the retention time, and how far each
 * policy has read the log.
 *
 * Invariants: bodies are stored as bytes, since an answer may hold bytes that PostgreSQL's text cannot.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE webhook_payloads (
      event_id uuid PRIMARY KEY,
      account_id uuid NOT NULL,
      body bytea NOT NULL,
      sha256 text NOT NULL,
      stored_at timestamptz NOT NULL
    )`.execute(db);
  await sql`CREATE INDEX webhook_payloads_by_age ON webhook_payloads (stored_at)`.execute(db);
  await sql`CREATE INDEX webhook_payloads_by_account ON webhook_payloads (account_id)`.execute(db);
  await sql`
    CREATE TABLE webhook_answers (
      delivery_id uuid NOT NULL,
      series integer NOT NULL,
      attempt integer NOT NULL,
      account_id uuid NOT NULL,
      body bytea NOT NULL,
      stored_at timestamptz NOT NULL,
      PRIMARY KEY (delivery_id, series, attempt)
    )`.execute(db);
  await sql`CREATE INDEX webhook_answers_by_age ON webhook_answers (stored_at)`.execute(db);
  await sql`CREATE INDEX webhook_answers_by_account ON webhook_answers (account_id)`.execute(db);
  await sql`
    CREATE TABLE policy_marks (
      policy text PRIMARY KEY,
      position bigint NOT NULL,
      stream text COLLATE "C" NOT NULL,
      revision integer NOT NULL,
      event_id uuid NOT NULL
    )`.execute(db);
}
