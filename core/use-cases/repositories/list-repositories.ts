/** Reads repositories in one form, both lists from the read model and single ones from their streams. */
import type { RepositorySelection } from '../../access-token/repository-selection.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { RepositoryLists, RepositoryRow } from '../../ports/repository-lists.ts';
import type { FoundRepository } from './repositories.ts';

export interface ListRepositoriesContext {
  readonly readModels: ReadModelProgress & RepositoryLists;
}

export interface WantedRepositories {
  readonly account: AccountId;
  /** The repositories that the caller may see. */
  readonly selection: RepositorySelection;
  /** The list must include the log up to this position. */
  readonly seen: LogPosition;
  readonly page: Page;
}

/** Lists repositories in the order of their names, without regard to case. */
export async function listRepositories(
  { readModels }: ListRepositoriesContext,
  { account, selection, seen, page }: WantedRepositories,
): Promise<PageOf<RepositoryRow>> {
  await readModels.caughtUp(seen);
  const only = selection.scope === 'ALL_REPO' ? null : selection.repositoryIds;
  return readModels.repositories(account, only, page);
}

/** Returns one repository in the form that lists use. */
export function repositoryRow({
  id,
  accountId,
  account,
  owned,
  entity,
  defaultBranch,
}: FoundRepository): RepositoryRow {
  return {
    id,
    accountId,
    username: account.username,
    name: owned.name,
    description: owned.description,
    defaultBranch,
    storageBucketId: owned.storageBucketId,
    sizeBytes: entity.state.layersSizeBytes,
    createdAt: owned.createdAt,
    pushedAt: entity.state.pushedAt,
  };
}
