/**
 * Lists the moments at which the refs of a repository changed, to choose one from: its pushes and restorations.
 *
 * Invariants: only the owner reads the past of a repository, so callers show the list to nobody else.
 */
import type { ActivityReader, PushRow } from '../../ports/activity.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { FoundRepository } from '../repositories/repositories.ts';

export interface MomentsContext {
  readonly readModels: ReadModelProgress & Pick<ActivityReader, 'pushActivity'>;
}

export interface MomentsPage {
  /** The newest first. */
  readonly moments: readonly PushRow[];
  readonly hasOlder: boolean;
}

/** Lists the pushes before a revision of the stream; before null: from the newest on. */
export async function listMoments(
  { readModels }: MomentsContext,
  { id, entity }: FoundRepository,
  { before, limit }: { readonly before: number | null; readonly limit: number },
): Promise<MomentsPage> {
  await readModels.caughtUp(entity.position);
  const found = await readModels.pushActivity(id, { before, limit: limit + 1, changes: 0 });
  return { moments: found.slice(0, limit).map(({ push }) => push), hasOlder: found.length > limit };
}
