/** The processes that run on the log, and which forms each of them reads (core/ports/running-processes.ts). */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // With a write-ahead log: after a crash of the database an empty list would say that no older process runs.
  await sql`
    CREATE TABLE running_processes (
      id uuid PRIMARY KEY,
      events jsonb NOT NULL,
      models jsonb NOT NULL,
      kept_at timestamptz NOT NULL
    )`.execute(db);
}
