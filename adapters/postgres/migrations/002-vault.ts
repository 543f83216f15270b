/**
 * The vault's tables: sealed records, and the wrapped data key of each account.
 *
 * Invariants: an erased account keeps its row, without a key, so that nothing is written for it again. These
 * tables are the only copy of their data: a rebuild of projections neither drops nor compares them.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE vault_keys (
      account_id uuid PRIMARY KEY,
      wrapped_key bytea,
      erased_at timestamptz,
      CHECK ((wrapped_key IS NULL) = (erased_at IS NOT NULL))
    )`.execute(db);
  await sql`
    CREATE TABLE vault_records (
      account_id uuid NOT NULL REFERENCES vault_keys,
      ref text COLLATE "C" NOT NULL,
      field text NOT NULL,
      lookup bytea NOT NULL,
      sealed bytea NOT NULL,
      put_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (account_id, ref),
      UNIQUE (account_id, lookup)
    )`.execute(db);
  await sql`
    COMMENT ON COLUMN vault_records.put_at IS
      'When the record was last asked for by put, to the hour: one that no event names 24 h later may be removed.'
  `.execute(db);
}
