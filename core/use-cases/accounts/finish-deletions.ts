/**
 * The policy that finishes deletions cut in half: a repository is closed, and its name was never given back.
 *
 * Must stay true: whatever any node died of, the name of a closed repository comes free by itself; the request that
 * closed it is given the time to do so in its own name.
 */
import type { RepositoryId } from '../../kernel/ids.ts';
import type { ReadModels } from '../../ports/read-models.ts';
import type { Context } from '../../runtime/execute.ts';
import { releaseName } from './repositories.ts';
import { systemCause } from '../../runtime/system-cause.ts';

export interface DeletionFinisherContext extends Context {
  readonly readModels: Pick<ReadModels, 'halfDeleted'>;
}

/** To be called at intervals: what was cut in half already at the call before is finished. Several nodes may. */
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
