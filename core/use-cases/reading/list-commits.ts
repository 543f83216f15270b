/** Lists pages of a ref's commits. Those of the default branch are from the read model, others from the objects. */
import type { CommitRow } from '../../git/commit-row.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { HistoryReader } from '../../ports/history.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type CommitTotals, walkCommits } from './commit-walk.ts';
import { closing, openView, openViewWithRows, type RepositoryView, type RowsContext } from './repository-view.ts';
import {
  answeredName,
  findDefaultBranch,
  namesDefaultBranch,
  resolveRef,
  withoutDefaultBranch,
} from './resolve-ref.ts';

export interface ListCommitsContext extends RowsContext {
  readonly readModels: ReadModelProgress & Pick<HistoryReader, 'defaultBranchCommits'>;
  readonly commitTotals: CommitTotals;
}

export interface WantedCommits {
  /** A text as resolve-ref.ts reads it; null: the default branch. */
  readonly ref: string | null;
  readonly page: Page;
}

export interface CommitList {
  /**
   * The version of the repository that the list shows. It is later than the caller's if a push was committed meanwhile.
   */
  readonly version: string;
  /** The ref that the caller named, or the short name of the default branch. */
  readonly ref: string;
  /** Newest first, in the order of `git log`. */
  readonly commits: PageOf<CommitRow>;
}

type Refused = { readonly refused: Refusal };

/**
 * Refused with `repository-without-commits`, `default-branch-missing`, `ref-not-found`, or `repository-not-found` if it was deleted meanwhile.
 */
export async function listCommits(
  context: ListCommitsContext,
  known: FoundRepository,
  wanted: WantedCommits,
): Promise<CommitList | Refused> {
  const { ref, page } = wanted;
  // The read model has the default branch as it is now.
  if (known.asOf !== undefined || !namesDefaultBranch(known, ref)) {
    return closing(openView(context, known), (view) => listFromObjects(context, view, wanted));
  }
  const opened = await openViewWithRows(context, known, {
    isEmpty: (repository) => findDefaultBranch(repository) === null,
    read: ({ id }) => context.readModels.defaultBranchCommits(id, page),
  });
  if ('refused' in opened) return opened;
  return closing(opened, (view) => {
    const { version, repository, rows } = view;
    // The default branch may have changed since the caller found the repository: then `ref` may name another one.
    if (rows !== null && namesDefaultBranch(repository, ref)) {
      return { version, ref: answeredName(repository, ref), commits: rows };
    }
    return ref === null ? refuse(withoutDefaultBranch(repository)) : listFromObjects(context, view, wanted);
  });
}

async function listFromObjects(
  { commitTotals }: ListCommitsContext,
  view: RepositoryView<unknown>,
  { ref, page }: WantedCommits,
): Promise<CommitList | Refused> {
  const reader = await view.objects();
  const resolved = await resolveRef(view.repository, reader, ref);
  if ('refused' in resolved) return resolved;
  const commits = await walkCommits(reader, resolved.commit.id, page, commitTotals);
  return { version: view.version, ref: resolved.name, commits };
}
