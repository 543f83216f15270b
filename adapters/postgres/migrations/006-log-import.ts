/** The mark of an unfinished import: a row while the log holds, or may hold, only a part of the imported one. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE unfinished_import (
      one boolean PRIMARY KEY DEFAULT true CHECK (one),
      began_at timestamptz NOT NULL DEFAULT now()
    )`.execute(db);
}
