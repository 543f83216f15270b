/**
 * Refused exchanges on PostgreSQL (core/ports/refused-exchanges.ts).
 *
 * Invariants: every caller first adds its rows and then removes those beyond the limit, so whichever comes last
 * leaves no more than the limit. One statement adds all rows of a token.
 */
import type pg from 'pg';
import { plusMs, type TrustRuleId, timestamp } from '../../core/kernel/ids.ts';
import { REFUSED_EXCHANGE_KEPT_MS, REFUSED_EXCHANGES_MAX } from '../../core/kernel/limits.ts';
import {
  type ExchangeFault,
  type RefusedExchange,
  type RefusedExchanges,
  RefusedExchangesError,
} from '../../core/ports/refused-exchanges.ts';
import { queryReporting, unavailable } from './outages.ts';

const query = queryReporting(
  unavailable(RefusedExchangesError, 'refused-exchanges-unavailable', 'The refusals cannot be reached'),
);

/** Enough that the table shrinks, and so few that no exchange waits for them. Internal: the rest is removed later. */
const OLD_REMOVED_MAX = 100;

/** In the order of the key, so that two callers lock their rows in the same order. */
const NOTE = `
  WITH old AS (
    DELETE FROM refused_exchanges WHERE (account_id, rule_id, fault, claim, found) IN (
      SELECT account_id, rule_id, fault, claim, found FROM refused_exchanges WHERE last_at < $4 AND account_id <> $1
      ORDER BY last_at LIMIT ${OLD_REMOVED_MAX} FOR UPDATE SKIP LOCKED))
  INSERT INTO refused_exchanges (account_id, rule_id, fault, claim, found, times, first_at, last_at)
  SELECT $1::uuid, r.rule, r.fault, coalesce(r.claim, ''), coalesce(r.found, ''), 1, $3, $3
  FROM json_to_recordset($2) AS r(rule uuid, fault text, claim text, found text)
  ORDER BY r.rule
  ON CONFLICT (account_id, rule_id, fault, claim, found) DO UPDATE
  SET times = refused_exchanges.times + 1, last_at = greatest(refused_exchanges.last_at, excluded.last_at)`;

const TRIM = `
  DELETE FROM refused_exchanges AS r USING (
    SELECT rule_id, fault, claim, found, row_number() OVER (PARTITION BY rule_id ORDER BY last_at DESC, fault, claim, found)
      AS place
    FROM refused_exchanges WHERE account_id = $1) AS ordered
  WHERE r.account_id = $1 AND ordered.place > ${REFUSED_EXCHANGES_MAX} AND r.rule_id = ordered.rule_id
    AND r.fault = ordered.fault AND r.claim = ordered.claim AND r.found = ordered.found`;

const LIST = `
  SELECT rule_id, fault, claim, found, times, first_at, last_at FROM refused_exchanges
  WHERE account_id = $1 AND rule_id = $2 ORDER BY last_at DESC, fault, claim, found LIMIT ${REFUSED_EXCHANGES_MAX}`;

interface Row {
  readonly rule_id: TrustRuleId;
  readonly fault: ExchangeFault;
  readonly claim: string;
  readonly found: string;
  readonly times: string;
  readonly first_at: string;
  readonly last_at: string;
}

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresRefusedExchanges(pool: pg.Pool): RefusedExchanges {
  return {
    async note(account, refusals, at) {
      if (refusals.length === 0) return;
      await query(pool, NOTE, [
        account,
        JSON.stringify(refusals.map(storable)),
        at,
        plusMs(at, -REFUSED_EXCHANGE_KEPT_MS),
      ]);
      await query(pool, TRIM, [account]);
    },
    async list(account, rule) {
      const { rows } = await query<Row>(pool, LIST, [account, rule]);
      return rows.map((row) => ({
        rule: row.rule_id,
        fault: row.fault,
        claim: row.claim === '' ? null : row.claim,
        found: row.found === '' ? null : row.found,
        times: Number(row.times),
        firstAt: timestamp(row.first_at),
        lastAt: timestamp(row.last_at),
      }));
    },
    async remove(account, rule) {
      const text = 'DELETE FROM refused_exchanges WHERE account_id = $1 AND ($2::uuid IS NULL OR rule_id = $2)';
      await query(pool, text, [account, rule]);
    },
  };
}

function storable({ rule, fault, claim, found }: RefusedExchange) {
  return { rule, fault, claim, found };
}
