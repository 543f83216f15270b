/** The changes of a repository's refs. */
import type { z } from 'zod';
import { READS_ACTIVITY } from '../../../core/use-cases/callers/permission.ts';
import { listActivity } from '../../../core/use-cases/reading/list-activity.ts';
import { ok } from '../http/answer.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { ACTIVITY } from '../schemas/activity.ts';
import { PAGE_QUERY, pageOf, paginationOf } from '../schemas/common.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';

export const ACTIVITY_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'listActivity',
    tag: 'Code',
    summary: 'List the changes of refs',
    description:
      'What each push created, moved, forced or deleted, newest first. It names commits that no branch or tag reaches any more, so it needs the grant ALL and the scope ALL_REPO.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/activity',
    grant: READS_ACTIVITY.grant,
    scope: READS_ACTIVITY.scope,
    schemas: { params: REPOSITORY_PARAMS, query: PAGE_QUERY },
    answers: { 200: ACTIVITY },
    problems: [],
    handle: getActivity,
  }),
];

async function getActivity(
  { context, repository }: RepositoryCall,
  { query }: { readonly query: z.output<typeof PAGE_QUERY> },
): Promise<Outcome> {
  const { items, total } = await listActivity(context, repository, pageOf(query));
  const json: z.output<typeof ACTIVITY> = {
    activity: items.map(({ push, ref, before, after, kind }) => ({
      id: push.eventId,
      at: push.at,
      actor: { kind: push.actor.kind, id: push.actor.id },
      ref,
      before,
      after,
      kind,
    })),
    pagination: paginationOf(query, total),
  };
  return ok(json);
}
