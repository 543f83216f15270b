/** What undoes: restorations of refs, deleted repositories, purges. */
import type { z } from 'zod';
import { refuse } from '../../../core/kernel/decider.ts';
import { parseUuid, type RepositoryId } from '../../../core/kernel/ids.ts';
import type { RestorePoint } from '../../../core/use-cases/as-of/moment.ts';
import { listDeletedRepositories } from '../../../core/use-cases/repositories/list-deleted-repositories.ts';
import { repositoryRow } from '../../../core/use-cases/repositories/list-repositories.ts';
import { type Purge, planPurge, purgeRepository } from '../../../core/use-cases/undo/purge-repository.ts';
import { planRestoration, type RestorationPlan, restoreRefs } from '../../../core/use-cases/undo/restore-refs.ts';
import { undeleteRepository } from '../../../core/use-cases/undo/undelete-repository.ts';
import { LOST_PLACES } from '../../front-door/texts/lost-places.ts';
import { ok } from '../http/answer.ts';
import type { AccountCall, Outcome, RepositoryCall } from '../route.ts';
import type { ID_PARAMS } from '../schemas/params.ts';
import type { DELETED_REPOSITORIES, PURGE, PURGED, RESTORATION, RESTORED, UNDELETION } from '../schemas/undo.ts';
import { repositoryObject } from './repositories.ts';

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
function momentOf({ at, event_id, before_event_id }: z.output<typeof RESTORATION>): RestorePoint {
  if (event_id !== undefined) return { event: event_id };
  if (before_event_id !== undefined) return { beforeEvent: before_event_id };
  if (at === undefined) throw new TypeError('The schema let a restoration without a moment through');
  return { at };
}

function restorationJson({ updates, leftOut }: RestorationPlan, event: string | null): z.output<typeof RESTORED> {
  return {
    event_id: event,
    updates: updates.map(({ ref, before, after, kind }) => ({ ref, before, after, kind })),
    left_out: [...leftOut],
  };
}

export async function getDeletedRepositories({ context, principal }: AccountCall): Promise<Outcome> {
  const deleted = await listDeletedRepositories(context, principal.account);
  const json: z.output<typeof DELETED_REPOSITORIES> = {
    repositories: deleted.map(({ id, name, deletedAt, expiresAt, sizeBytes, lost }) => ({
      id,
      name,
      deleted_at: deletedAt,
      expires_at: expiresAt,
      size_bytes: sizeBytes,
      restorable: lost === null,
      reason: lost === null ? null : LOST_PLACES[lost],
    })),
  };
  return ok(json);
}

type Params = z.output<typeof ID_PARAMS>;

export async function postUndeletion(
  { context, origin }: AccountCall,
  { params, body }: { readonly params: Params; readonly body: z.output<typeof UNDELETION> },
): Promise<Outcome> {
  const id = parseUuid<RepositoryId>(params.id);
  if (id === null) return refuse({ code: 'repository-not-found' });
  const undeleted = await undeleteRepository(context, await origin(), { id, name: body?.name ?? null });
  if ('refused' in undeleted) return undeleted;
  return ok(repositoryObject(repositoryRow(undeleted), context.addresses().webUrl));
}

export async function postPurge(
  { context, origin, signal }: AccountCall,
  { params, body }: { readonly params: Params; readonly body: z.output<typeof PURGE> },
): Promise<Outcome> {
  const id = parseUuid<RepositoryId>(params.id);
  if (id === null) return refuse({ code: 'repository-not-found' });
  const isDry = body?.dry_run === true;
  const purge = isDry ? planPurge : purgeRepository;
  const purged = await purge(context, await origin(), id, signal());
  return 'refused' in purged ? purged : ok(purgeJson(purged), isDry ? 200 : 202);
}

function purgeJson({ event, freedBytes, leftWithOwnerBytes }: Purge): z.output<typeof PURGED> {
  const left = leftWithOwnerBytes === undefined ? {} : { left_with_owner_bytes: leftWithOwnerBytes };
  return { event_id: event, freed_bytes: freedBytes, ...left };
}
