/** The queries of an account's repositories, for REST, and of deletions that are not finished. */
import type { AccountId, RepositoryId } from '../../core/kernel/ids.ts';
import type { Page, PageOf } from '../../core/kernel/page.ts';
import type { LayerPlace } from '../../core/ports/layer-stores.ts';
import type { RepositoryRow } from '../../core/ports/repository-lists.ts';
import { FALLBACK_DEFAULT_BRANCH } from '../../core/repository/state.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';
import { storableText } from '../runner/bulk.ts';

/**
 * The query of a page: `$3` rows from `$4` on of the open repositories of account `$1` that satisfy a condition.
 * A condition that is costly is evaluated a single time for each if the list is materialized.
 */
const pageOf = (condition: string, listed: 'MATERIALIZED' | 'NOT MATERIALIZED'): ReadQuery => ({
  answer: (table) => `WITH listed AS ${listed} (
      SELECT r.*, c.default_branch, c.size_bytes, c.pushed_at
      FROM ${table('repositories')} AS r LEFT JOIN ${table('repository_contents')} AS c USING (id)
      WHERE r.account_id = $1 AND ${condition} AND c.closed IS NOT TRUE)
    SELECT json_build_object(
    'total', (SELECT count(*) FROM listed),
    'items', (SELECT coalesce(json_agg(page), '[]') FROM (
      SELECT r.id, r.account_id AS "accountId", o.username, r.name, r.description,
        coalesce(r.default_branch, r.initial_default_branch, '${FALLBACK_DEFAULT_BRANCH}') AS "defaultBranch",
        r.storage_bucket_id AS "storageBucketId", coalesce(r.size_bytes, 0) AS "sizeBytes",
        r.created_at AS "createdAt", r.pushed_at AS "pushedAt"
      FROM ${table('repository_owners')} AS o, listed AS r WHERE o.account_id = r.account_id
      ORDER BY r.name_key LIMIT $3 OFFSET $4) AS page))`,
});

/** Only those in `$2` unless it is null. */
const repositoriesQuery = pageOf('($2::uuid[] IS NULL OR r.id = ANY($2))', 'NOT MATERIALIZED');

/** Letters beyond ASCII have cases too, whatever the collation of the database. Bytes are compared. */
const lower = (text: string): string => `lower(${text} COLLATE "pg_c_utf8") COLLATE "C"`;

const SEARCHED = `(SELECT ${lower('$2::text')})`;

/** Only those whose name or description holds `$2`. */
const searchQuery = pageOf(
  `(strpos(r.name_key, ${SEARCHED}) > 0 OR strpos(${lower('r.description')}, ${SEARCHED}) > 0)`,
  'MATERIALIZED',
);

export async function readRepositories(
  reader: LiveReader,
  account: AccountId,
  only: readonly RepositoryId[] | null,
  page: Page,
): Promise<PageOf<RepositoryRow>> {
  const { value } = await reader.read(repositoriesQuery, [account, only, page.limit, page.offset], () => ({ account }));
  return value as PageOf<RepositoryRow>;
}

export async function findRepositories(
  reader: LiveReader,
  account: AccountId,
  text: string,
  page: Page,
): Promise<PageOf<RepositoryRow>> {
  const { value } = await reader.read(searchQuery, [account, storableText(text), page.limit, page.offset], () => ({
    account,
  }));
  return value as PageOf<RepositoryRow>;
}

/** Repositories that are closed while their account still lists them. A repository that is fully deleted has no row. */
const halfDeletedQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(r), '[]') FROM (
    SELECT r.account_id AS account, r.id AS repository
    FROM ${table('repository_contents')} AS c JOIN ${table('repositories')} AS r USING (id)
    WHERE c.closed) AS r`,
};

export async function readHalfDeleted(
  reader: LiveReader,
): Promise<readonly { readonly account: AccountId; readonly repository: RepositoryId }[]> {
  // No parked stream makes these rows wrong.
  const { value } = await reader.read(halfDeletedQuery, [], () => ({ streams: [] }));
  return value as readonly { readonly account: AccountId; readonly repository: RepositoryId }[];
}

const bucketsInUseQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(places), '[]') FROM (
    SELECT DISTINCT account_id AS account, storage_bucket_id AS "storageBucketId"
    FROM ${table('repositories')} WHERE storage_bucket_id IS NOT NULL) AS places`,
};

export async function readBucketsInUse(reader: LiveReader): Promise<readonly LayerPlace[]> {
  // A bucket that a parked stream hides is swept later.
  const { value } = await reader.read(bucketsInUseQuery, [], () => ({ streams: [] }));
  return value as readonly LayerPlace[];
}

const ownerQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(account_id), '[]') FROM ${table('repositories')} WHERE id = $1`,
};

export async function readOwner(reader: LiveReader, repository: RepositoryId): Promise<AccountId | null> {
  // An owner that a parked stream hides is found later.
  const { value } = await reader.read(ownerQuery, [repository], () => ({ streams: [] }));
  return (value as readonly AccountId[])[0] ?? null;
}
