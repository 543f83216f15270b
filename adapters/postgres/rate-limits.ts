/**
 * Rate limits on PostgreSQL, by rate-limiter-flexible (core/ports/rate-limits.ts).
 *
 * Invariants: a count is one row, changed by one statement, so all nodes together keep the limit. Nodes measure the
 * span by their own clocks. If PostgreSQL cannot be reached, nothing is taken and the caller gets an error: a count in
 * the node's memory instead would let everybody begin again. Keys are stored as digests under a secret key.
 */
import type pg from 'pg';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { type RateCount, type RateLimit, type RateLimits, RateLimitsError } from '../../core/ports/rate-limits.ts';
import { reportingOutage, unavailable } from './outages.ts';

const TABLE = 'rate_limits';
/** Rows that one statement removes. Internal: the rest is removed by further statements. */
const REMOVED_AT_ONCE_MAX = 1_000;

export interface PostgresRateLimitsOptions {
  /** The pool of a migrated database; the caller closes it. */
  readonly pool: pg.Pool;
  /** Returns a digest of a key under a secret of the service. */
  readonly digestOf: (key: string) => Promise<string>;
}

export function createPostgresRateLimits({ pool, digestOf }: PostgresRateLimitsOptions): RateLimits {
  const limiters = new Map<RateLimit, RateLimiterPostgres>();
  const limiterOf = (limit: RateLimit): RateLimiterPostgres => {
    const known = limiters.get(limit) ?? createLimiter(pool, limit);
    limiters.set(limit, known);
    return known;
  };
  const giveBack = async (counts: readonly RateCount[]): Promise<void> => {
    const keys: string[] = [];
    for (const { limit, key } of counts) keys.push(limiterOf(limit).getKey(await digestOf(key)));
    // The library's own `reward` would begin a new span with a credit, if the span ended before that.
    const text = `UPDATE ${TABLE} SET points = points - 1 WHERE key = ANY ($1::text[]) AND points > 0 AND expire > $2`;
    await asOutage(() => pool.query(text, [keys, Date.now()]));
  };
  return {
    giveBack,
    async take(counts) {
      const taken: RateCount[] = [];
      for (const count of counts) {
        const key = await digestOf(count.key);
        const waitMs = await asOutage(() => consume(limiterOf(count.limit), key));
        // A refused time counts in the library too.
        taken.push(count);
        if (waitMs === null) continue;
        await giveBack(taken);
        return Math.max(1, Math.ceil(waitMs / 1_000));
      }
      return null;
    },
  };
}

/** Removes counts whose span is over. Any number of nodes may call it. */
export async function removeExpiredCounts(pool: pg.Pool, signal: { readonly aborted: boolean }): Promise<void> {
  const expired = `SELECT key FROM ${TABLE} WHERE expire < $1 ORDER BY expire LIMIT $2`;
  // The outer query repeats the condition because PostgreSQL checks only that again on a row changed concurrently.
  const text = `DELETE FROM ${TABLE} WHERE expire < $1 AND key IN (${expired})`;
  while (!signal.aborted) {
    const { rowCount } = await asOutage(() => pool.query(text, [Date.now(), REMOVED_AT_ONCE_MAX]));
    if ((rowCount ?? 0) < REMOVED_AT_ONCE_MAX) return;
  }
}

function createLimiter(pool: pg.Pool, { name, timesMax, spanMs }: RateLimit): RateLimiterPostgres {
  return new RateLimiterPostgres({
    storeClient: pool,
    storeType: 'pool',
    tableName: TABLE,
    tableCreated: true,
    clearExpiredByTimeout: false,
    keyPrefix: name,
    points: timesMax,
    duration: spanMs / 1_000,
  });
}

/** Returns null, or the milliseconds to wait if none is left. */
async function consume(limiter: RateLimiterPostgres, key: string): Promise<number | null> {
  try {
    await limiter.consume(key);
    return null;
  } catch (refused) {
    // The library rejects with its result, which is no error, when nothing is left.
    if (refused instanceof RateLimiterRes) return refused.msBeforeNext;
    throw refused;
  }
}

function asOutage<Result>(work: () => Promise<Result>): Promise<Result> {
  return reportingOutage(unavailable(RateLimitsError, 'rate-limits-unavailable'), work);
}
