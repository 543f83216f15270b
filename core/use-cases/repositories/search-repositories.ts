/** Finds an account's repositories by a part of their names or descriptions. */
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { RepositoryRow } from '../../ports/repository-lists.ts';
import { type ListRepositoriesContext, listRepositories } from './list-repositories.ts';

export interface WantedSearch {
  readonly account: AccountId;
  /** Without regard to case; empty for every repository. */
  readonly text: string;
  readonly seen: LogPosition;
  readonly page: Page;
}

/** Lists the repositories that match, in the order of `listRepositories`. The caller must see all of the account's. */
export async function searchRepositories(
  context: ListRepositoriesContext,
  { account, text, seen, page }: WantedSearch,
): Promise<PageOf<RepositoryRow>> {
  const wanted = text.trim();
  if (wanted === '') {
    return listRepositories(context, { account, selection: { scope: 'ALL_REPO', repositoryIds: [] }, seen, page });
  }
  await context.readModels.caughtUp(seen);
  return context.readModels.repositoriesWith(account, wanted, page);
}
