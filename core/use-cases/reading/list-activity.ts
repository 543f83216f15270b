/**
 * Lists the changes of a repository's refs: what each push created, moved, forced or deleted, and who pushed.
 *
 * Invariants: it names commits that no ref reaches any more, so callers show it to the owner only
 * (docs/interface.md, Activity).
 */
import type { Page, PageOf } from '../../kernel/page.ts';
import type { ActivityReader, ActivityRow, PushActivity, PushRow, WantedPushes } from '../../ports/activity.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { FoundRepository } from '../repositories/repositories.ts';

type Reading<Method extends keyof ActivityReader> = {
  readonly readModels: ReadModelProgress & Pick<ActivityReader, Method>;
};

export type ListActivityContext = Reading<'activity'>;

/** Newest first; within one push in the reverse order of its updates. */
export async function listActivity(
  { readModels }: ListActivityContext,
  { id, entity }: FoundRepository,
  page: Page,
): Promise<PageOf<ActivityRow>> {
  await readModels.caughtUp(entity.position);
  return readModels.activity(id, page);
}

export interface PushPage {
  readonly pushes: readonly PushActivity[];
  /** The push before the last of the page, which left the refs as that one found them; null if there is none. */
  readonly next: PushActivity | null;
}

/** Lists the pushes before a revision of the stream; null: from the newest on. */
export async function listPushes(
  { readModels }: Reading<'pushActivity'>,
  { id, entity }: FoundRepository,
  { before, limit, changes }: WantedPushes,
): Promise<PushPage> {
  await readModels.caughtUp(entity.position);
  // One more: it says whether there is another page, and names the moment before the last push.
  const found = await readModels.pushActivity(id, { before, limit: limit + 1, changes });
  return { pushes: found.slice(0, limit), next: found[limit] ?? null };
}

export interface ChangesOfPush extends PageOf<ActivityRow> {
  readonly push: PushRow;
  /** The event that left the refs as this push found them; null if there is none. */
  readonly previous: PushRow | null;
}

/** Lists the changes of the push at a revision, the last one first; null if there is no such push. */
export async function listChangesOfPush(
  context: Reading<'pushActivity' | 'changes'>,
  repository: FoundRepository,
  revision: number,
  { offset, limit }: Page,
): Promise<ChangesOfPush | null> {
  const { pushes, next } = await listPushes(context, repository, { before: revision + 1, limit: 1, changes: 0 });
  const [found] = pushes;
  if (found === undefined || found.push.revision !== revision) return null;
  const { push, first, count } = found;
  const end = first + count - offset;
  const start = Math.max(first, end - limit);
  const items = end > start ? await context.readModels.changes(repository.id, start, end - start) : [];
  return { push, previous: next?.push ?? null, items, total: count };
}
