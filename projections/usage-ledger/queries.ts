/** The queries of the usage ledger, and of what tokens did. */
import { type AccessTokenId, type AccountId, plusMs, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import { TOKEN_USE_ADDRESSES_MAX } from '../../core/kernel/limits.ts';
import type {
  LedgerEntry,
  LedgerPage,
  RepositoryUse,
  RepositoryUsePlace,
  TokenUse,
  TokenUsePlace,
  UsageLedgerReader,
} from '../../core/ports/usage-ledger.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';
import type { TableOf } from '../runner/projection.ts';
import { IS_ACCESS, IS_USE, MINUTE } from './table.ts';

/** The levels before and until the end of the month, and its sums. */
function sums(table: TableOf): string {
  return `(SELECT coalesce(sum(repos) FILTER (WHERE month < $2), 0) AS repos_before,
        coalesce(sum(repos), 0) AS repos,
        coalesce(sum(storage_bytes) FILTER (WHERE month < $2), 0) AS storage_before,
        coalesce(sum(storage_bytes), 0) AS storage,
        coalesce(sum(transfer_bytes) FILTER (WHERE month = $2), 0) AS transfer,
        coalesce(sum(ingress_bytes) FILTER (WHERE month = $2), 0) AS ingress
      FROM ${table('ledger_months')} WHERE account_id = $1 AND month <= $2) AS m,
    (SELECT coalesce(sum(s.storage_bytes) FILTER (WHERE s.month < $2), 0) AS storage_before,
        coalesce(sum(s.storage_bytes), 0) AS storage
      FROM ${table('ledger_in_buckets')} JOIN ${table('ledger_storage')} AS s USING (repository_id)
      WHERE account_id = $1 AND s.month <= $2) AS own,
    (SELECT coalesce(sum(sent_bytes), 0) AS transfer, coalesce(sum(received_bytes), 0) AS ingress
      FROM ${table('ledger_minutes')} WHERE account_id = $1 AND left(day, 7) = $2) AS unsummed`;
}

/** Reads that a daily sum holds are shown by the minute from this day on, a parameter, and by the day before it. */
function isShown(table: TableOf, minutesFrom: '$7' | '$10'): string {
  return `CASE WHEN is_day_sum THEN at < ${minutesFrom} WHEN stream IS NULL OR at >= ${minutesFrom} THEN true
    ELSE NOT EXISTS (SELECT FROM ${table('ledger_recorded')} AS u
      WHERE u.account_id = $1 AND e.appended_on <= u.through AND e.position < u.position) END`;
}

/** `-99` sorts behind every day of the month and before the next month. */
const ledgerQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object(
      'opening', json_build_object('repos', m.repos_before, 'storage_bytes', m.storage_before - own.storage_before),
      'totals', json_build_object('repos', m.repos, 'storage_bytes', m.storage - own.storage,
        'transfer_bytes', m.transfer + unsummed.transfer, 'ingress_bytes', m.ingress + unsummed.ingress),
      'entries', (SELECT coalesce(json_agg(entry), '[]') FROM (
        SELECT at, event_id AS "eventId", index, member, delta, repository_id AS "repositoryId", token_id AS "tokenId",
          stream IS NOT NULL AS operational
        FROM ${table('ledger_entries')} AS e
        WHERE account_id = $1 AND at >= $2::text AND at < $2::text || '-99' AND (at, event_id, index) > ($3, $4, $5)
          AND ${isShown(table, '$7')} AND delta <> 0 AND NOT (member = 'storage_bytes' AND repository_id IN
            (SELECT repository_id FROM ${table('ledger_in_buckets')} WHERE account_id = $1))
        ORDER BY account_id, at, event_id, index LIMIT $6) AS entry))
    FROM ${sums(table)}`,
};

/** Sorts before every entry. */
const BEGINNING = { at: '', eventId: '00000000-0000-0000-0000-000000000000', index: 0 };

export async function readUsageLedger(
  reader: LiveReader,
  account: AccountId,
  month: string,
  { after, limit, minutesFrom }: Parameters<UsageLedgerReader['usageLedger']>[2],
): Promise<LedgerPage> {
  const { at, eventId, index } = after ?? BEGINNING;
  const values = [account, month, at, eventId, index, limit + 1, minutesFrom];
  const { value } = await reader.read(ledgerQuery, values, () => ({ account }));
  const page = value as Omit<LedgerPage, 'hasMore'> & { readonly entries: readonly LedgerEntry[] };
  return { ...page, entries: page.entries.slice(0, limit), hasMore: page.entries.length > limit };
}

/** The index has the order of the groups, so a page adds up no more than its own rows. */
const usesQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(token_use), '[]') FROM (
      SELECT minute || ':00.000Z' AS minute, "repositoryId", reads, writes,
        ARRAY(SELECT DISTINCT ref COLLATE "C" FROM unnest(string_to_array(refs, ',')) AS ref
          ORDER BY 1 LIMIT ${TOKEN_USE_ADDRESSES_MAX}) AS "addressRefs"
      FROM (SELECT ${MINUTE} AS minute, repository_id AS "repositoryId", sum(reads) AS reads, sum(writes) AS writes,
          string_agg(address_refs, ',') FILTER (WHERE address_refs <> '') AS refs
        FROM ${table('ledger_entries')}
        WHERE token_id = $1 AND account_id = $2 AND ${IS_USE} AND (${MINUTE}, repository_id) > ($3, $4)
        GROUP BY ${MINUTE}, repository_id ORDER BY ${MINUTE}, repository_id LIMIT $5) AS uses
      ORDER BY minute, "repositoryId") AS token_use`,
};

export async function readTokenUses(
  reader: LiveReader,
  account: AccountId,
  token: AccessTokenId,
  { after, limit }: { readonly after: TokenUsePlace | null; readonly limit: number },
): Promise<{ readonly uses: readonly TokenUse[]; readonly hasMore: boolean }> {
  const place = after === null ? ['', BEGINNING.eventId] : [after.minute.slice(0, 16), after.repositoryId];
  const { value } = await reader.read(usesQuery, [token, account, ...place, limit + 1], () => ({ account }));
  const uses = value as readonly TokenUse[];
  return { uses: uses.slice(0, limit), hasMore: uses.length > limit };
}

/** Sums of days count from the day of `since` on; the index has the order of the minutes. */
const accessesQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(access), '[]') FROM (
      SELECT minute || ':00.000Z' AS minute, "wholeDay", kind, id, reads, writes - restores AS pushes, restores,
        ARRAY(SELECT DISTINCT ref COLLATE "C" FROM unnest(string_to_array(refs, ',')) AS ref
          ORDER BY 1 LIMIT ${TOKEN_USE_ADDRESSES_MAX}) AS "addressRefs"
      FROM (SELECT ${MINUTE} AS minute, is_day_sum AS "wholeDay", reader_kind AS kind, reader_id AS id,
          sum(reads) AS reads, sum(writes) AS writes, sum(restores) AS restores,
          string_agg(address_refs, ',') FILTER (WHERE address_refs <> '') AS refs
        FROM ${table('ledger_entries')} AS e
        WHERE account_id = $1 AND repository_id = $2 AND ${IS_ACCESS}
          AND ${MINUTE} >= $11 AND ${MINUTE} < $4
          AND (is_day_sum OR ${MINUTE} >= $3)
          AND (${MINUTE}, is_day_sum, reader_kind, reader_id) > ($5, $6::boolean, $7, $8)
          AND ${isShown(table, '$10')}
        GROUP BY ${MINUTE}, is_day_sum, reader_kind, reader_id
        ORDER BY ${MINUTE}, is_day_sum, reader_kind, reader_id LIMIT $9) AS sums
      ORDER BY minute, "wholeDay", kind, id) AS access`,
};

/** Sorts behind every minute. */
const NO_END = '9999-99';
const FIRST_USE = { minute: '', wholeDay: false, kind: '', id: '' };

export async function readRepositoryUses(
  reader: LiveReader,
  { account, repository, since, until, minutesFrom }: Parameters<UsageLedgerReader['repositoryUses']>[0],
  { after, limit }: { readonly after: RepositoryUsePlace | null; readonly limit: number },
): Promise<{ readonly uses: readonly RepositoryUse[]; readonly hasMore: boolean }> {
  const { minute, wholeDay, kind, id } = after ?? FIRST_USE;
  const range = [since?.slice(0, 16) ?? '', until === null ? NO_END : firstMinuteNotBefore(until)];
  const place = [minute.slice(0, 16), wholeDay, kind, id];
  const firstDay = since === null ? '' : `${since.slice(0, 10)}T00:00`;
  const from = minute > firstDay ? minute.slice(0, 16) : firstDay;
  const values = [account, repository, ...range, ...place, limit + 1, minutesFrom, from];
  const { value } = await reader.read(accessesQuery, values, () => ({ account }));
  const uses = value as readonly RepositoryUse[];
  return { uses: uses.slice(0, limit), hasMore: uses.length > limit };
}

/** A minute that has begun before the end of the range is in it. */
function firstMinuteNotBefore(until: Timestamp): string {
  return until > LAST_MINUTE ? NO_END : plusMs(until, MINUTE_MS - 1).slice(0, 16);
}

const MINUTE_MS = 60_000;
const LAST_MINUTE = timestamp('9999-12-31T23:59:00.000Z');
