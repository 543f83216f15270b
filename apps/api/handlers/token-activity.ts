/** What became of an access token, and what was done with it. */
import type { z } from 'zod';
import { type AccessTokenId, parseUuid } from '../../../core/kernel/ids.ts';
import { readTokenActivity, type TokenActivityPlace } from '../../../core/use-cases/tokens/token-activity.ts';
import { activityPlaceText } from '../../front-door/list-places.ts';
import { ok } from '../http/answer.ts';
import { type AccountCall, accountRoute, type Outcome, type Route } from '../route.ts';
import { ID_PARAMS } from '../schemas/params.ts';
import { TOKEN_ACTIVITY, TOKEN_ACTIVITY_QUERY } from '../schemas/token-activity.ts';

export const TOKEN_ACTIVITY_ROUTES: readonly Route[] = [
  accountRoute({
    operationId: 'getAccessTokenActivity',
    tag: 'Audit',
    summary: 'Read what became of an access token, and what was done with it',
    description:
      'Also of a revoked one. Reads of the last minute are not in the log yet; a crash may lose that minute. Addresses are those of writes.',
    method: 'GET',
    path: '/v1/access-tokens/{id}/activity',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { params: ID_PARAMS, query: TOKEN_ACTIVITY_QUERY },
    answers: { 200: TOKEN_ACTIVITY },
    problems: [404],
    handle: getTokenActivity,
  }),
];

const BEGINNING: TokenActivityPlace = { changes: 0, used: null };

async function getTokenActivity(
  { context, principal, position }: AccountCall,
  {
    params,
    query,
  }: { readonly params: z.output<typeof ID_PARAMS>; readonly query: z.output<typeof TOKEN_ACTIVITY_QUERY> },
): Promise<Outcome> {
  const token = parseUuid<AccessTokenId>(params.id);
  if (token === null) return { refused: { code: 'token-not-found' } };
  const { after: from = BEGINNING, limit } = query;
  const activity = await readTokenActivity(context, { account: principal.account, token, seen: position, from, limit });
  if ('refused' in activity) return activity;
  const json: z.output<typeof TOKEN_ACTIVITY> = {
    changes: activity.changes.map(({ at, eventId, grants, scope, repositoryIds, expiresAt, revoked }) => ({
      at,
      event_id: eventId,
      grants: [...grants],
      scope,
      repository_ids: [...repositoryIds],
      expires_at: expiresAt,
      revoked,
    })),
    used: activity.used.map(({ minute, repositoryId, reads, writes, addresses }) => ({
      minute,
      repository_id: repositoryId,
      reads,
      writes,
      addresses: Object.fromEntries([...addresses].map(([ref, { nonce, value }]) => [ref, { nonce, value }])),
    })),
    pagination: { next_after: activityPlaceText(activity.next), has_more: activity.hasMore },
  };
  return ok(json);
}
