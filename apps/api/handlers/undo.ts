/** What undoes: restorations of refs, deleted repositories, purges. */
import type { z } from 'zod';
import { refuse } from '../../../core/kernel/decider.ts';
import { parseUuid, type RepositoryId } from '../../../core/kernel/ids.ts';
import { DELETED_REPOSITORIES_LISTED_MAX } from '../../../core/kernel/limits.ts';
import type { RestorePoint } from '../../../core/use-cases/as-of/resolve-moment.ts';
import { listDeletedRepositories } from '../../../core/use-cases/repositories/list-deleted-repositories.ts';
import { repositoryRow } from '../../../core/use-cases/repositories/list-repositories.ts';
import { type Purge, planPurge, purgeRepository } from '../../../core/use-cases/undo/purge-repository.ts';
import { planRestoration, type RestorationPlan, restoreRefs } from '../../../core/use-cases/undo/restore-refs.ts';
import { undeleteRepository } from '../../../core/use-cases/undo/undelete-repository.ts';
import { LOST_PLACES } from '../../front-door/texts/lost-places.ts';
import { ok } from '../http/answer.ts';
import {
  type AccountCall,
  accountRoute,
  type Outcome,
  type RepositoryCall,
  type Route,
  repositoryRoute,
} from '../route.ts';
import { ID_PARAMS, REPOSITORY_PARAMS } from '../schemas/params.ts';
import { REPOSITORY } from '../schemas/repositories.ts';
import { DELETED_REPOSITORIES, PURGE, PURGED, RESTORATION, RESTORED, UNDELETION } from '../schemas/undo.ts';
import { repositoryObject } from './repositories.ts';

const RESTORATION_NOTES =
  'Sets refs back to what they were, and deletes those that were made later; the default branch stays. It is one event, which can be undone like any other. The moment is one of `at`, `event_id` and `before_event_id`. 409 if refs are changed at the same time, 410 if objects have left storage.';

const PURGE_NOTES =
  'Removes for good, without waiting for the retention: all of a deleted repository, or of a living one what no branch and no tag reaches now, such as a secret after a forced push. It cannot be undone. The answer is 202, since the bytes leave storage within about an hour; 200 for a dry run. A living repository that a purge rewrote within the last hour is 429 if it is to be rewritten again, and so is one of an account whose purges left more than the quota of `waiting_storage_bytes`.';

export const UNDO_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'restoreRefs',
    tag: 'Undo',
    summary: 'Restore refs',
    description: RESTORATION_NOTES,
    method: 'POST',
    path: '/v1/repos/{username}/{name}/restore',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { params: REPOSITORY_PARAMS, body: RESTORATION },
    answers: { 200: RESTORED },
    problems: [409, 410],
    handle: postRestoration,
  }),
  accountRoute({
    operationId: 'listDeletedRepositories',
    tag: 'Undo',
    summary: 'List deleted repositories',
    description: `Those deleted within the retention of the service, the last ${DELETED_REPOSITORIES_LISTED_MAX}.`,
    method: 'GET',
    path: '/v1/repositories/deleted',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: {},
    answers: { 200: DELETED_REPOSITORIES },
    problems: [],
    handle: getDeletedRepositories,
  }),
  accountRoute({
    operationId: 'undeleteRepository',
    tag: 'Undo',
    summary: 'Undelete a repository',
    description:
      'It comes back with its history; scopes of tokens and webhooks that name it take effect again. 409 if its name is taken, which `name` solves, or if its storage bucket was deleted or given another place, which nothing solves; 410 if it has left storage.',
    method: 'POST',
    path: '/v1/repositories/{id}/restore',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { params: ID_PARAMS, body: UNDELETION },
    answers: { 200: REPOSITORY },
    problems: [404, 409, 410],
    handle: postUndeletion,
  }),
  accountRoute({
    operationId: 'purgeRepository',
    tag: 'Undo',
    summary: 'Purge a repository',
    description: PURGE_NOTES,
    method: 'POST',
    path: '/v1/repositories/{id}/purge',
    beyondQuota: true,
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { params: ID_PARAMS, body: PURGE },
    answers: { 200: PURGED, 202: PURGED },
    problems: [404, 409],
    handle: postPurge,
  }),
];

async function postRestoration(
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

async function getDeletedRepositories({ context, principal }: AccountCall): Promise<Outcome> {
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

async function postUndeletion(
  { context, origin }: AccountCall,
  { params, body }: { readonly params: Params; readonly body: z.output<typeof UNDELETION> },
): Promise<Outcome> {
  const id = parseUuid<RepositoryId>(params.id);
  if (id === null) return refuse({ code: 'repository-not-found' });
  const undeleted = await undeleteRepository(context, await origin(), { id, name: body?.name ?? null });
  if ('refused' in undeleted) return undeleted;
  return ok(repositoryObject(repositoryRow(undeleted), context.addresses().webUrl));
}

async function postPurge(
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
