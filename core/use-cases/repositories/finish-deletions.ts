/**
 * The policy that finishes interrupted deletions: the repository is closed, but its name was not released.
 *
 * Invariants: the name of a closed repository is released even if the node that deleted it has died. The request
 * that closed the repository gets time to release the name first, so that the event names its own actor.
 */
import type { RepositoryId } from '../../kernel/ids.ts';
import type { HalfDeletedRepositories } from '../../ports/repository-lists.ts';
import type { Context } from '../../runtime/execute.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { releaseName } from './repositories.ts';

export interface DeletionFinisherContext extends Context {
  readonly readModels: HalfDeletedRepositories;
}

/**
 * Returns a function to call at intervals. It finishes the deletions that were already incomplete at its previous call.
 * Several nodes may run it at the same time.
 */
export function createDeletionFinisher(context: DeletionFinisherContext): () => Promise<void> {
  let seenBefore: ReadonlySet<RepositoryId> = new Set();
  return async () => {
    const found = await context.readModels.halfDeleted();
    const due = found.filter(({ repository }) => seenBefore.has(repository));
    seenBefore = new Set(found.map(({ repository }) => repository));
    for (const { account, repository } of due) {
      const cause = systemCause(context.ids, 'finish-deletions');
      await releaseName(context, { account, cause }, repository);
    }
  };
}
