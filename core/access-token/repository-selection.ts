/** The repositories of an account that an access token, or a webhook made with one, may use. */
import type { Scope } from '../kernel/grants.ts';
import type { RepositoryId } from '../kernel/ids.ts';

export interface RepositorySelection {
  readonly scope: Scope;
  /** Empty for `ALL_REPO`. It may still hold the id of a repository that was deleted. */
  readonly repositoryIds: readonly RepositoryId[];
}

export const ALL_REPOSITORIES: RepositorySelection = { scope: 'ALL_REPO', repositoryIds: [] };

export function isSelected({ scope, repositoryIds }: RepositorySelection, repository: RepositoryId): boolean {
  return scope === 'ALL_REPO' || repositoryIds.includes(repository);
}

/** Returns true if `outer` selects every repository that `inner` selects, now and at any later time. */
export function coversSelection(outer: RepositorySelection, inner: RepositorySelection): boolean {
  if (outer.scope === 'ALL_REPO') return true;
  return inner.scope === 'SELECTED_REPO' && inner.repositoryIds.every((id) => outer.repositoryIds.includes(id));
}
