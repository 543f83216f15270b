/** The queries of an account's repositories, for REST, and of deletions that are not finished. */
import type { AccountId, RepositoryId } from '../../core/kernel/ids.ts';
import type { Page, PageOf } from '../../core/kernel/page.ts';
import type { RepositoryRow } from '../../core/ports/repository-lists.ts';
import { FALLBACK_DEFAULT_BRANCH } from '../../core/repository/state.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';

/** Returns the FROM clause of the list: open repositories of account `$1`, only those in `$2` unless it is null. */
const listed = (repositories: string, contents: string): string => `${repositories} AS r
  LEFT JOIN ${contents} AS c USING (id)
  WHERE r.account_id = $1 AND ($2::uuid[] IS NULL OR r.id = ANY($2)) AND c.closed IS NOT TRUE`;

const repositoriesQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object(
    'total', (SELECT count(*) FROM ${listed(table('repositories'), table('repository_contents'))}),
    'items', (SELECT coalesce(json_agg(page), '[]') FROM (
      SELECT r.id, r.account_id AS "accountId", o.username, r.name, r.description,
        coalesce(c.default_branch, r.initial_default_branch, '${FALLBACK_DEFAULT_BRANCH}') AS "defaultBranch",
        r.storage_bucket_id AS "storageBucketId", coalesce(c.size_bytes, 0) AS "sizeBytes",
        r.created_at AS "createdAt", c.pushed_at AS "pushedAt"
      FROM ${table('repository_owners')} AS o, ${listed(table('repositories'), table('repository_contents'))}
        AND o.account_id = r.account_id
      ORDER BY r.name_key LIMIT $3 OFFSET $4) AS page))`,
};

export async function readRepositories(
  reader: LiveReader,
  account: AccountId,
  only: readonly RepositoryId[] | null,
  page: Page,
): Promise<PageOf<RepositoryRow>> {
  const { value } = await reader.read(repositoriesQuery, [account, only, page.limit, page.offset], () => ({ account }));
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
