/** The query of an account's access tokens, for REST. */
import type { AccountId, Timestamp } from '../../core/kernel/ids.ts';
import type { AccessTokenRow } from '../../core/ports/access-token-lists.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';

const accessTokensQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(token), '[]') FROM (
    SELECT id, name, scope, grants, repository_ids AS "repositoryIds", expires_at AS "expiresAt",
      created_at AS "createdAt", token_prefix AS "tokenPrefix"
    FROM ${table('access_tokens')}
    WHERE account_id = $1 AND (expires_at IS NULL OR expires_at > $2)
    ORDER BY created_at DESC, position DESC) AS token`,
};

export async function readAccessTokens(
  reader: LiveReader,
  account: AccountId,
  now: Timestamp,
): Promise<readonly AccessTokenRow[]> {
  const { value } = await reader.read(accessTokensQuery, [account, now], () => ({ account }));
  return value as readonly AccessTokenRow[];
}
