/** The repositories that an account may choose for a token, by name, as this node knows the account. */
import { accounts } from '../../account/evolve.ts';
import type { OwnedRepository } from '../../account/repositories/state.ts';
import type { AccountId, RepositoryId } from '../../kernel/ids.ts';
import { pickInTurns, sortInTurns } from '../../kernel/turns.ts';
import type { Context } from '../../runtime/execute.ts';

export interface OwnRepository {
  readonly id: RepositoryId;
  readonly name: string;
  /** Old names that lead on to it. */
  readonly formerNames: readonly string[];
}

/** In the order of their names; none if the account is not open. The caller must have awaited `entities.barrier()`. */
export async function listOwnRepositories(
  { entities, clock }: Pick<Context, 'entities' | 'clock'>,
  account: AccountId,
): Promise<readonly OwnRepository[]> {
  const { state } = await entities.get(accounts, account);
  if (state.status !== 'open') return [];
  // An account may have a hundred thousand.
  const named = ([id, { name, formerNames }]: readonly [RepositoryId, OwnedRepository]) => ({ id, name, formerNames });
  const own = await pickInTurns(state.repositories.entries(), named, clock.nextTurn);
  return sortInTurns(own, (a, b) => (a.name < b.name ? -1 : 1), clock.nextTurn);
}
