/** Snapshots of long streams. Emptying the table makes loading slower and changes no result. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE snapshots (
      stream text COLLATE "C" NOT NULL,
      code_version integer NOT NULL,
      revision integer NOT NULL,
      state text NOT NULL,
      PRIMARY KEY (stream, code_version, revision)
    )`.execute(db);
}
