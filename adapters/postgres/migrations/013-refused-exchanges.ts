/**
 * Why identity tokens were refused, for the owners of trust rules.
 *
 * Invariants: equal refusals of a rule are one row. `claim` and `found` are empty where there is none.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE refused_exchanges (
      account_id uuid NOT NULL,
      rule_id uuid NOT NULL,
      fault text NOT NULL,
      claim text NOT NULL,
      found text NOT NULL,
      times bigint NOT NULL,
      first_at text NOT NULL,
      last_at text NOT NULL,
      PRIMARY KEY (account_id, rule_id, fault, claim, found)
    )`.execute(db);
  await sql`CREATE INDEX refused_exchanges_by_age ON refused_exchanges (last_at)`.execute(db);
}
