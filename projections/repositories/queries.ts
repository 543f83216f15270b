/** The list of an account's repositories, as REST shows it, and the deletions that wait for their end. */
import type { AccountId, RepositoryId } from '../../core/kernel/ids.ts';
import type { Page, PageOf, RepositoryRow } from '../../core/ports/read-models.ts';
import { FALLBACK_DEFAULT_BRANCH } from '../../core/repository/state.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';

/** What the list is of: open repositories of `$1`, only those of `$2` unless null. */
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

/** A deleted repository has no row in either table. */
const halfDeletedQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(r), '[]') FROM (
    SELECT r.account_id AS account, r.id AS repository
    FROM ${table('repository_contents')} AS c JOIN ${table('repositories')} AS r USING (id)
    WHERE c.closed) AS r`,
};

export async function readHalfDeleted(
  reader: LiveReader,
): Promise<readonly { readonly account: AccountId; readonly repository: RepositoryId }[]> {
  // Whose events are parked elsewhere changes nothing about these.
  const { value } = await reader.read(halfDeletedQuery, [], () => ({ streams: [] }));
  return value as readonly { readonly account: AccountId; readonly repository: RepositoryId }[];
}
