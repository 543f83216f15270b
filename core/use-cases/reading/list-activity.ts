/**
 * Lists the changes of a repository's refs: what each push created, moved, forced or deleted, and who pushed.
 *
 * Invariants: it names commits that no ref reaches any more, so callers show it to the owner only
 * (docs/interface.md, Activity).
 */
import type { Page, PageOf } from '../../kernel/page.ts';
import type { ActivityReader, ActivityRow } from '../../ports/activity.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { FoundRepository } from '../repositories/repositories.ts';

export interface ListActivityContext {
  readonly readModels: ReadModelProgress & Pick<ActivityReader, 'activity'>;
}

/** Newest first; within one push in the reverse order of its updates. */
export async function listActivity(
  { readModels }: ListActivityContext,
  { id, entity }: FoundRepository,
  page: Page,
): Promise<PageOf<ActivityRow>> {
  await readModels.caughtUp(entity.position);
  return readModels.activity(id, page);
}
