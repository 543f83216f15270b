/** The repositories that an account may choose for a token, by name, as this node knows the account. */
import { accounts } from '../../account/evolve.ts';
import type { AccountId, RepositoryId } from '../../kernel/ids.ts';
import type { Context } from '../../runtime/execute.ts';

export interface OwnRepository {
  readonly id: RepositoryId;
  readonly name: string;
}

/** In the order of their names; none if the account is not open. The caller must have awaited `entities.barrier()`. */
export async function listOwnRepositories(
  { entities }: Pick<Context, 'entities'>,
  account: AccountId,
): Promise<readonly OwnRepository[]> {
  const { state } = await entities.get(accounts, account);
  if (state.status !== 'open') return [];
  return [...state.repositories.entries()]
    .map(([id, { name }]) => ({ id, name }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
