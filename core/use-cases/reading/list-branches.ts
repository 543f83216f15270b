/** Lists the branches of a repository with their head commits, from the read model. */
import type { Refusal } from '../../kernel/refusal.ts';
import type { BranchRow, HistoryReader } from '../../ports/history.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { closing, openViewWithRows, type RowsContext } from './repository-view.ts';

export interface ListBranchesContext extends RowsContext {
  readonly readModels: ReadModelProgress & Pick<HistoryReader, 'branches'>;
}

export interface BranchList {
  /**
   * The version of the repository that the list shows. It is later than the caller's if a push was committed since.
   */
  readonly version: string;
  /** Short name. The branch need not exist. */
  readonly defaultBranch: string;
  /** In byte order of their names. */
  readonly branches: readonly BranchRow[];
}

/** Refused with `repository-not-found` if the repository has been deleted. */
export async function listBranches(
  context: ListBranchesContext,
  known: FoundRepository,
): Promise<BranchList | { readonly refused: Refusal }> {
  const view = await openViewWithRows(context, known, {
    isEmpty: ({ entity }) => entity.state.refs.size === 0,
    read: ({ id }) => context.readModels.branches(id),
  });
  if ('refused' in view) return view;
  return closing(view, ({ version, repository, rows }) => ({
    version,
    defaultBranch: repository.defaultBranch,
    branches: rows?.branches ?? [],
  }));
}
