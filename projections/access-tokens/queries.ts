/** The queries of access tokens: those of an account, for REST, and which of some ids are tokens. */
import { streamName } from '../../core/kernel/envelope.ts';
import type { AccessTokenId, AccountId, Timestamp } from '../../core/kernel/ids.ts';
import type { AccessTokenRow, AccessTokenSums } from '../../core/ports/access-token-lists.ts';
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

const sumsQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('tokens', count(*),
      'repositories', coalesce(sum(json_array_length(repository_ids)), 0))
    FROM ${table('access_tokens')}
    WHERE account_id = $1 AND (expires_at IS NULL OR expires_at > $2) AND id IS DISTINCT FROM $3::uuid`,
};

export async function sumAccessTokens(
  reader: LiveReader,
  account: AccountId,
  now: Timestamp,
  besides: AccessTokenId | null,
): Promise<AccessTokenSums> {
  const { value } = await reader.read(sumsQuery, [account, now, besides], () => ({ account }));
  return value as AccessTokenSums;
}

const tokensAmongQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(id), '[]') FROM (
    SELECT id FROM ${table('access_tokens')} WHERE id = ANY ($1::uuid[])
    UNION ALL
    SELECT id FROM ${table('exchanged_tokens')} WHERE id = ANY ($1::uuid[])) AS token`,
};

export async function readTokensAmong(
  reader: LiveReader,
  ids: readonly AccessTokenId[],
): Promise<ReadonlySet<AccessTokenId>> {
  // A token whose stream is parked may be missing from the tables.
  const streams = ids.map((id) => streamName('accessToken', id));
  const { value } = await reader.read(tokensAmongQuery, [ids], () => ({ streams }));
  return new Set(value as readonly AccessTokenId[]);
}
