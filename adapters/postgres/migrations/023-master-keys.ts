/**
 * Which master key sealed what, so that it can be replaced while servers run (rotate-master-key.ts).
 *
 * Invariants: `master_keys` is empty until the first rotation, and its last row names the key that new rows are sealed
 * under. A row without a name was sealed under the key of before the first rotation. The key of fingerprints outlives
 * every master key, since streams are named by it.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE master_keys (
      generation integer PRIMARY KEY,
      key_id text COLLATE "C" NOT NULL UNIQUE,
      sealed_fingerprint_key bytea NOT NULL
    )`.execute(db);
  for (const table of ['vault_keys', 'signing_keys', 'log_keys']) {
    await sql`ALTER TABLE ${sql.id(table)} ADD COLUMN master_key_id text COLLATE "C"`.execute(db);
  }
}
