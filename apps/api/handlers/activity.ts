/** The changes of a repository's refs. */
import type { z } from 'zod';
import { listActivity } from '../../../core/use-cases/reading/list-activity.ts';
import { ok } from '../http/answer.ts';
import type { Outcome, RepositoryCall } from '../route.ts';
import type { ACTIVITY } from '../schemas/activity.ts';
import { type PAGE_QUERY, pageOf, paginationOf } from '../schemas/common.ts';

export async function getActivity(
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
