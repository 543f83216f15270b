/**
 * The sums of rates that nodes tell each other, in a table without a write-ahead log (core/ports/rate-sums.ts).
 *
 * Invariants: an exchange is one statement. Rows of one node are changed by that node alone, and removed by any when
 * their span is over.
 */
import type pg from 'pg';
import { RateLimitsError } from '../../core/ports/rate-limits.ts';
import type { RateSumsExchange } from '../../core/ports/rate-sums.ts';
import { reportingOutage, unavailable } from './outages.ts';

/** Clocks of nodes differ. */
const KEPT_SECONDS = 120;

const EXCHANGE = `
  WITH spans AS (
    SELECT name, span, ends_at, sums FROM json_to_recordset($2) AS s (name text, span bigint, ends_at bigint, sums json)
  ), told AS (
    INSERT INTO rate_sums (name, span, key, node, amount, ends_at)
    SELECT s.name, s.span, t.key, $1, t.amount, s.ends_at
    FROM spans s CROSS JOIN json_to_recordset(s.sums) AS t (key text, amount bigint)
    ORDER BY 1, 2, 3
    ON CONFLICT (name, span, key, node) DO UPDATE SET amount = EXCLUDED.amount
  ), over AS (
    DELETE FROM rate_sums WHERE ends_at < extract(epoch FROM now()) - ${KEPT_SECONDS}
  )
  SELECT r.name, r.span::float8 AS span, r.key, sum(r.amount)::float8 AS amount
  FROM rate_sums r JOIN spans s ON s.name = r.name AND s.span = r.span
  WHERE r.node <> $1 GROUP BY 1, 2, 3`;

interface SumRow {
  readonly name: string;
  readonly span: number;
  readonly key: string;
  readonly amount: number;
}

/** `pool` is of a migrated database; the caller closes it. */
export function createPostgresRateSums(pool: pg.Pool): RateSumsExchange {
  return {
    async exchange(node, told) {
      const values = told.map(({ endsAtSeconds, ...others }) => ({ ...others, ends_at: endsAtSeconds }));
      const { rows } = await reportingOutage(unavailable(RateLimitsError, 'rate-limits-unavailable'), () =>
        pool.query<SumRow>(EXCHANGE, [node, JSON.stringify(values)]),
      );
      return told.map(({ name, span }) => ({
        name,
        span,
        sums: rows.filter((row) => row.name === name && row.span === span).map(({ key, amount }) => ({ key, amount })),
      }));
    },
  };
}
