/** Who could read a repository as of a moment, and who did. */
import type { z } from 'zod';
import { listRepositoryAccesses, NOT_METERED } from '../../../core/use-cases/auditing/repository-accesses.ts';
import { accessPlaceText } from '../../front-door/list-places.ts';
import { ok } from '../http/answer.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { AT_QUERY } from '../schemas/common.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';
import { ACCESSES_QUERY, REPOSITORY_ACCESS, REPOSITORY_ACCESSES } from '../schemas/repository-access.ts';

export const REPOSITORY_ACCESS_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'getRepositoryAccess',
    costly: true,
    tag: 'Access',
    summary: 'Read who could read a repository as of a moment',
    description:
      'The owner, active webhooks, and the access tokens and trust rules with ALL, GIT_HTTP_READ, GIT_HTTP_WRITE or API_COMMITS_READ whose scope reached it: those that were revoked since too, no expired ones. Folded from the log alone. 404 before the repository was made, and while it was deleted.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/access',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { params: REPOSITORY_PARAMS, query: AT_QUERY },
    answers: { 200: REPOSITORY_ACCESS },
    problems: [],
    handle: getAccess,
  }),
  repositoryRoute({
    operationId: 'listRepositoryAccesses',
    tag: 'Access',
    summary: 'List who read and wrote a repository',
    description:
      'By the minute, with addresses, as long as the retention keeps that of reads; reads of earlier days by the day. Reads of the last minute are not in the log yet; a crash may lose that minute. `not_metered` lists what leaves no row.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/accesses',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { params: REPOSITORY_PARAMS, query: ACCESSES_QUERY },
    answers: { 200: REPOSITORY_ACCESSES },
    problems: [],
    handle: getAccesses,
  }),
];

async function getAccess(
  call: RepositoryCall,
  { query }: { readonly query: z.output<typeof AT_QUERY> },
): Promise<Outcome> {
  const { context, repository, position } = call;
  const wanted = { account: repository.accountId, repository: repository.id, at: query.at ?? null };
  const access = await context.accountStates.accessAt(wanted, { seen: position, signal: call.signal() });
  if ('refused' in access) return access;
  const { at, sequence, subjects } = access;
  const json: z.output<typeof REPOSITORY_ACCESS> = {
    at,
    sequence,
    subjects: subjects.map(({ kind, id, name, grants, scope, eventId }) => ({
      kind,
      id,
      name,
      grants: [...grants],
      scope,
      event_id: eventId,
    })),
  };
  return ok(json);
}

async function getAccesses(
  { context, repository, position }: RepositoryCall,
  { query }: { readonly query: z.output<typeof ACCESSES_QUERY> },
): Promise<Outcome> {
  const { since = null, until = null, after = null, limit } = query;
  const { accesses, hasMore } = await listRepositoryAccesses(context, {
    account: repository.accountId,
    repository: repository.id,
    seen: position,
    since,
    until,
    after,
    limit,
  });
  const last = accesses.at(-1) ?? after;
  const json: z.output<typeof REPOSITORY_ACCESSES> = {
    accesses: accesses.map(({ minute, wholeDay, kind, id, reads, pushes, restores, addresses }) => ({
      minute,
      whole_day: wholeDay,
      kind,
      id,
      reads,
      pushes,
      restores,
      addresses: Object.fromEntries([...addresses].map(([ref, { nonce, value }]) => [ref, { nonce, value }])),
    })),
    pagination: { next_after: last === null ? null : accessPlaceText(last), has_more: hasMore },
    not_metered: [...NOT_METERED],
  };
  return ok(json);
}
