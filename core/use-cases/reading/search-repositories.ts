/** Finds an account's repositories by a part of their names or descriptions. */
import { accounts } from '../../account/evolve.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { RepositoryRow } from '../../ports/repository-lists.ts';
import type { Context } from '../../runtime/execute.ts';
import { listRepositories, type ListRepositoriesContext } from './list-repositories.ts';

export interface WantedSearch {
  readonly account: AccountId;
  /** Without regard to case; empty for every repository. */
  readonly text: string;
  readonly seen: LogPosition;
  readonly page: Page;
}

/** Lists the repositories that match, in the order of `listRepositories`. The caller must see all of the account's. */
export async function searchRepositories(
  context: ListRepositoriesContext & Pick<Context, 'entities'>,
  { account, text, seen, page }: WantedSearch,
): Promise<PageOf<RepositoryRow>> {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') {
    return listRepositories(context, { account, selection: { scope: 'ALL_REPO', repositoryIds: [] }, seen, page });
  }
  const { state } = await context.entities.get(accounts, account);
  const owned = state.status === 'open' ? [...state.repositories.entries()].map(([, repository]) => repository) : [];
  const repositoryIds = owned
    .filter(({ name, description }) => `${name}\n${description ?? ''}`.toLowerCase().includes(wanted))
    .map(({ id }) => id);
  if (repositoryIds.length === 0) return { items: [], total: 0 };
  return listRepositories(context, { account, selection: { scope: 'SELECTED_REPO', repositoryIds }, seen, page });
}
