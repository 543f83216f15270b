/** Snapshots of long streams. Disposable: emptying the table costs time and changes no answer. */
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
