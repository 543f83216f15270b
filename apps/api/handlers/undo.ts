/** What undoes: restorations of refs, deleted repositories, purges. */
import type { z } from 'zod';
import type { Timestamp } from '../../../core/kernel/ids.ts';
import type { Moment } from '../../../core/use-cases/auditing/moment.ts';
import { planRestoration, type RestorationPlan, restoreRefs } from '../../../core/use-cases/auditing/restore-refs.ts';
import { ok } from '../http/answer.ts';
import type { Outcome, RepositoryCall } from '../route.ts';
import type { RESTORATION, RESTORED } from '../schemas/undo.ts';

export async function postRestoration(
  { context, repository, origin, signal }: RepositoryCall,
  { body }: { readonly body: z.output<typeof RESTORATION> },
): Promise<Outcome> {
  const wanted = { repository, to: momentOf(body), refs: body.refs ?? null, seen: null, signal: signal() };
  if (body.dry_run) {
    const plan = await planRestoration(context, wanted);
    return 'refused' in plan ? plan : ok(restorationJson(plan, null));
  }
  const restored = await restoreRefs(context, await origin(), wanted);
  return 'refused' in restored ? restored : ok(restorationJson(restored, restored.event));
}

/** The schema lets one of the three through. */
function momentOf({ at, event_id, before_event_id }: z.output<typeof RESTORATION>): Moment {
  if (event_id !== undefined) return { event: event_id };
  if (before_event_id !== undefined) return { beforeEvent: before_event_id };
  return { at: at as Timestamp };
}

function restorationJson({ updates }: RestorationPlan, event: string | null): z.output<typeof RESTORED> {
  return { event_id: event, updates: updates.map(({ ref, before, after, kind }) => ({ ref, before, after, kind })) };
}
