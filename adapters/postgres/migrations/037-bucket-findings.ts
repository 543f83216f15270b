/** What verifications found out about the providers of storage buckets (core/ports/bucket-findings.ts). */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE bucket_findings (
      account_id uuid NOT NULL,
      bucket_id uuid NOT NULL,
      place_ref text NOT NULL,
      conditional_writes boolean NOT NULL,
      checks_bodies boolean NOT NULL,
      PRIMARY KEY (account_id, bucket_id)
    )`.execute(db);
}
