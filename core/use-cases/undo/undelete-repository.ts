/**
 * Gives a deleted repository back to its account.
 *
 * Invariants: two streams need two commits. First the account lists the repository again, which alone can be refused,
 * for its name, the quota or its bucket; then its own stream is reopened, guarded by the account's revision. A process
 * that dies between them leaves the repository listed and closed, as an interrupted deletion does: the next request
 * finishes it, or finish-deletions.ts deletes the repository again. The first append is guarded by the closed stream,
 * so a repository whose layers have expired is never listed.
 */
import { boundPlace } from '../../account/buckets/binding.ts';
import { accounts } from '../../account/evolve.ts';
import { repositoryNameKey } from '../../account/names.ts';
import type { Plans } from '../../account/plans.ts';
import { decideOwnedRepository } from '../../account/repositories/decide.ts';
import { refuse } from '../../kernel/decider.ts';
import { streamName } from '../../kernel/envelope.ts';
import type { AccountId, RepositoryId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import { decideRepository } from '../../repository/decide.ts';
import { repositories } from '../../repository/evolve.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';
import { type DeletionsContext, findDeletion, type RemovedRepository } from '../repositories/deletions.ts';
import { lastExpiry } from '../repositories/list-deleted-repositories.ts';
import {
  type FoundRepository,
  findRepositoryById,
  type RepositoryCommandOrigin,
  releaseName,
} from '../repositories/repositories.ts';

export interface UndeletingContext extends DeletionsContext {
  readonly plans: Plans;
  readonly failpoint: Failpoint;
}

type Refused = { readonly refused: Refusal };

/** Gives a deleted repository back to its account; `name` null: under the name that it had. */
export async function undeleteRepository(
  context: UndeletingContext,
  origin: RepositoryCommandOrigin,
  { id, name }: { readonly id: RepositoryId; readonly name: string | null },
): Promise<FoundRepository | Refused> {
  const removed = (await interrupted(context, origin, id, name)) ?? (await findDeletion(context, origin.account, id));
  if (removed === null) return refuse({ code: 'repository-not-found' });
  const { owned, place } = removed;
  const guarding = whileClosed(context, origin, id);
  const restored = await execute(context, accounts, origin.account, { ...origin, guarding }, (state) =>
    state.status === 'open'
      ? decideOwnedRepository(state, {
          type: 'RestoreRepository',
          deleted: { ...owned, name: name ?? owned.name },
          place,
          quotas: context.plans[state.plan],
        })
      : refuse({ code: 'account-not-found' }),
  );
  if ('refused' in restored) return named(context, restored, id);
  await context.failpoint('repository-listed-again');
  const about = { account: origin.account, cause: origin.cause, guarding: whileListed(context, origin.account, id) };
  const reopened = await execute(context, repositories, id, about, (state) =>
    decideRepository(state, { type: 'ReopenRepository' }),
  );
  if ('refused' in reopened) {
    // Layers expired after the first append: the list must not keep what can never be opened.
    if (reopened.refused.code === 'objects-expired') await releaseName(context, origin, id);
    return named(context, reopened, id);
  }
  return (await findRepositoryById(context, origin.account, id)) ?? refuse({ code: 'repository-not-found' });
}

/**
 * Returns the entry of a repository whose deletion or undeletion was interrupted; null if it is not listed. One that is
 * listed under another name than the wanted one is taken from the list first.
 */
async function interrupted(
  context: UndeletingContext,
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
  name: string | null,
): Promise<RemovedRepository | null> {
  const { state } = await context.entities.get(accounts, origin.account);
  const owned = state.status === 'open' ? state.repositories.get(id) : undefined;
  if (owned === undefined) return null;
  const { state: own } = await context.entities.get(repositories, id);
  const renamed = name !== null && repositoryNameKey(name) !== repositoryNameKey(owned.name);
  if (own.status === 'closed' && renamed) await releaseName(context, origin, id);
  return { owned, place: boundPlace(state, owned) };
}

/** Guards by the closed stream as well. */
function whileClosed(context: Context, origin: RepositoryCommandOrigin, id: RepositoryId): Guarding {
  return async () => {
    const allowed = (await origin.guarding?.()) ?? { guards: [] };
    if ('refused' in allowed) return allowed;
    const { state, stream, revision } = await context.entities.reload(repositories, id);
    if (state.status !== 'closed') return refuse({ code: 'repository-not-deleted' });
    if (state.expired) return refuse({ code: 'objects-expired', event: null });
    return { guards: [...allowed.guards, { stream, revision }] };
  };
}

function whileListed(context: Context, account: AccountId, id: RepositoryId): Guarding {
  return async () => {
    const { state, stream, revision } = await context.entities.reload(accounts, account);
    const isListed = state.status === 'open' && state.repositories.has(id);
    return isListed ? { guards: [{ stream, revision }] } : refuse({ code: 'repository-not-found' });
  };
}

/** Names the event with which layers left storage. */
async function named(context: Context, { refused }: Refused, id: RepositoryId): Promise<Refused> {
  if (refused.code !== 'objects-expired') return { refused };
  return refuse({ code: 'objects-expired', event: await lastExpiry(context, streamName('repository', id)) });
}
