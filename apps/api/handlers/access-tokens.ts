/** Access tokens: create, list, read, change, revoke. */
import type { z } from 'zod';
import type { AccessTokenSettings } from '../../../core/access-token/commands.ts';
import { type AccessTokenId, parseUuid, type Timestamp } from '../../../core/kernel/ids.ts';
import { PAGE_LIMIT_DEFAULT } from '../../../core/kernel/limits.ts';
import type { AccessTokenRow } from '../../../core/ports/access-token-lists.ts';
import {
  createAccessToken,
  revokeAccessToken,
  updateAccessToken,
} from '../../../core/use-cases/tokens/access-tokens.ts';
import {
  addLastUse,
  listAccessTokens,
  readAccessToken,
  refuseBeyondTokens,
} from '../../../core/use-cases/tokens/list-access-tokens.ts';
import { noContent, ok } from '../http/answer.ts';
import { type AccountCall, accountRoute, type Outcome, type Route } from '../route.ts';
import {
  ACCESS_TOKEN,
  ACCESS_TOKEN_CHANGES,
  ACCESS_TOKENS,
  CREATED_ACCESS_TOKEN,
  NEW_ACCESS_TOKEN,
  OFFERED_ACCESS_TOKEN,
} from '../schemas/access-tokens.ts';
import { OPTIONAL_PAGE_QUERY, pageOf, paginationOf } from '../schemas/common.ts';
import { ID_PARAMS } from '../schemas/params.ts';

export const ACCESS_TOKEN_ROUTES: readonly Route[] = [
  accountRoute({
    operationId: 'createAccessToken',
    tag: 'Access tokens',
    summary: 'Create an access token',
    description: 'Only this answer shows the secret.',
    method: 'POST',
    path: '/v1/access-tokens',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { body: NEW_ACCESS_TOKEN },
    offered: OFFERED_ACCESS_TOKEN,
    answers: { 201: CREATED_ACCESS_TOKEN },
    problems: [],
    handle: postAccessToken,
  }),
  accountRoute({
    operationId: 'listAccessTokens',
    tag: 'Access tokens',
    summary: 'List access tokens',
    description:
      'Newest first, without secrets; expired and revoked ones are left out. All of them, unless `page` or `limit` is given.',
    method: 'GET',
    path: '/v1/access-tokens',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { query: OPTIONAL_PAGE_QUERY },
    answers: { 200: ACCESS_TOKENS },
    problems: [],
    handle: getAccessTokens,
  }),
  accountRoute({
    operationId: 'getAccessToken',
    tag: 'Access tokens',
    summary: 'Read an access token',
    method: 'GET',
    path: '/v1/access-tokens/{id}',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { params: ID_PARAMS },
    answers: { 200: ACCESS_TOKEN },
    problems: [404],
    handle: getAccessToken,
  }),
  accountRoute({
    operationId: 'updateAccessToken',
    tag: 'Access tokens',
    summary: 'Change an access token',
    description:
      'Fields that are absent stay as they are. The result must obey the rules of a new token, but its list may keep ids of repositories that were deleted since.',
    method: 'PUT',
    path: '/v1/access-tokens/{id}',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { params: ID_PARAMS, body: ACCESS_TOKEN_CHANGES },
    answers: { 200: ACCESS_TOKEN },
    problems: [404],
    standing: getAccessToken,
    handle: putAccessToken,
  }),
  accountRoute({
    operationId: 'deleteAccessToken',
    tag: 'Access tokens',
    summary: 'Revoke an access token',
    description: 'Every node refuses the token from the next request on. Any token may revoke itself.',
    method: 'DELETE',
    path: '/v1/access-tokens/{id}',
    grant: 'ALL',
    scope: 'ALL_REPO',
    onItself: true,
    schemas: { params: ID_PARAMS },
    answers: { 204: null },
    problems: [404],
    handle: deleteAccessToken,
  }),
];

type TokenObject = z.output<typeof ACCESS_TOKEN>;
type Identified = { readonly params: z.output<typeof ID_PARAMS> };

/** An id that is not a UUID gets 404, like any id of no token. */
const NOT_FOUND: Outcome = { refused: { code: 'token-not-found' } };

async function postAccessToken(
  { context, origin, principal }: AccountCall,
  { body }: { readonly body: z.output<typeof NEW_ACCESS_TOKEN> },
): Promise<Outcome> {
  const wanted = { account: principal.account, repositories: body.repository_ids.length, changed: null };
  const tooMany = await refuseBeyondTokens(context, wanted);
  if (tooMany !== null) return tooMany;
  const secret = context.newTokenSecret();
  const settings = {
    name: body.name,
    scope: body.scope,
    grants: body.grants,
    repositoryIds: body.repository_ids,
    expiresAt: body.expires_at,
  };
  const created = await createAccessToken(context, await origin(), settings, secret);
  if ('refused' in created) return created;
  const token = tokenObject({ id: created.id, ...created.token }, null);
  const answer: z.output<typeof CREATED_ACCESS_TOKEN> = { ...token, token: secret };
  return ok(answer, 201);
}

async function getAccessTokens(
  { context, principal, position }: AccountCall,
  { query }: { readonly query: z.output<typeof OPTIONAL_PAGE_QUERY> },
): Promise<Outcome> {
  const asked = query.page !== undefined || query.limit !== undefined;
  const page = asked ? { page: query.page ?? 0, limit: query.limit ?? PAGE_LIMIT_DEFAULT } : null;
  const { items, total } = await listAccessTokens(context, principal.account, position, page && pageOf(page));
  const list: z.output<typeof ACCESS_TOKENS> = {
    access_tokens: items.map(({ token, lastUsedAt }) => tokenObject(token, lastUsedAt)),
    ...(page === null ? {} : { pagination: paginationOf(page, total) }),
  };
  return ok(list);
}

async function getAccessToken({ context, principal }: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<AccessTokenId>(params.id);
  if (id === null) return NOT_FOUND;
  const found = await readAccessToken(context, principal.account, id);
  return 'refused' in found ? found : ok(tokenObject(found.token, found.lastUsedAt));
}

async function putAccessToken(
  { context, origin, principal }: AccountCall,
  { params, body }: Identified & { readonly body: z.output<typeof ACCESS_TOKEN_CHANGES> },
): Promise<Outcome> {
  const id = parseUuid<AccessTokenId>(params.id);
  if (id === null) return NOT_FOUND;
  const changes: Partial<AccessTokenSettings> = {
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.scope === undefined ? {} : { scope: body.scope }),
    ...(body.grants === undefined ? {} : { grants: body.grants }),
    ...(body.repository_ids === undefined ? {} : { repositoryIds: body.repository_ids }),
    ...(body.expires_at === undefined ? {} : { expiresAt: body.expires_at }),
  };
  const wanted = { account: principal.account, repositories: body.repository_ids?.length ?? 0, changed: id };
  const tooMany = await refuseBeyondTokens(context, wanted);
  if (tooMany !== null) return tooMany;
  const updated = await updateAccessToken(context, await origin(), id, changes);
  if ('refused' in updated) return updated;
  const { token, lastUsedAt } = await addLastUse(context, { id, ...updated.token });
  return ok(tokenObject(token, lastUsedAt));
}

async function deleteAccessToken({ context, origin }: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<AccessTokenId>(params.id);
  if (id === null) return NOT_FOUND;
  const revoked = await revokeAccessToken(context, await origin(), id);
  return 'refused' in revoked ? revoked : noContent();
}

/** A token in the form of docs/interface.md, without its secret. */
export function tokenObject(row: AccessTokenRow, lastUsedAt: Timestamp | null): TokenObject {
  return {
    id: row.id,
    name: row.name,
    scope: row.scope,
    grants: [...row.grants],
    repository_ids: [...row.repositoryIds],
    expires_at: row.expiresAt,
    created_at: row.createdAt,
    last_used_at: lastUsedAt,
    token_prefix: row.tokenPrefix,
  };
}
