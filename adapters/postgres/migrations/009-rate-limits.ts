/**
 * Counts of rate limits (core/ports/rate-limits.ts). Emptying the table lets everybody begin again.
 *
 * Invariants: rate-limiter-flexible writes rows by the order of these columns; `expire` is in milliseconds since
 * 1970.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE rate_limits (
      key varchar(255) COLLATE "C" PRIMARY KEY,
      points integer NOT NULL DEFAULT 0,
      expire bigint
    )`.execute(db);
  await sql`CREATE INDEX rate_limits_by_expiry ON rate_limits (expire)`.execute(db);
}
