/** The repositories of an account that an access token, or a webhook made with one, may use. */
import { converted, list, object, parsed, word } from '../kernel/codec.ts';
import type { Scope } from '../kernel/grants.ts';
import { type RepositoryId, uuid } from '../kernel/ids.ts';

export interface RepositorySelection {
  readonly scope: Scope;
  /** Empty for `ALL_REPO`. It may still hold the id of a repository that was deleted. */
  readonly repositoryIds: readonly RepositoryId[];
}

/** The members of a selection in a snapshot. */
export const storedSelection = object<RepositorySelection>({
  scope: word<Scope>(),
  repositoryIds: list(parsed(uuid<RepositoryId>)),
});

/** Stores them beside the other members of what has the selection. */
export const selectedRepositories = converted(
  storedSelection,
  ({ repositories }: { readonly repositories: RepositorySelection }) => repositories,
  (repositories) => ({ repositories }),
);

export const ALL_REPOSITORIES: RepositorySelection = { scope: 'ALL_REPO', repositoryIds: [] };

export function isSelected({ scope, repositoryIds }: RepositorySelection, repository: RepositoryId): boolean {
  return scope === 'ALL_REPO' || repositoryIds.includes(repository);
}

/** Returns true if `outer` selects every repository that `inner` selects, now and at any later time. */
export function coversSelection(outer: RepositorySelection, inner: RepositorySelection): boolean {
  if (outer.scope === 'ALL_REPO') return true;
  return inner.scope === 'SELECTED_REPO' && inner.repositoryIds.every((id) => outer.repositoryIds.includes(id));
}
