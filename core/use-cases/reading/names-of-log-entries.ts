/**
 * The names of what entries of an account's log are about and who caused them, as they are now.
 *
 * Invariants: what belongs to another account has no name here. A repository that was deleted and a token that was
 * revoked have none either.
 */
import { accessTokens } from '../../access-token/evolve.ts';
import { accounts } from '../../account/evolve.ts';
import { createConcurrencyLimit } from '../../kernel/concurrency-limit.ts';
import type { AccessTokenId, AccountId, RepositoryId } from '../../kernel/ids.ts';
import type { Context } from '../../runtime/execute.ts';

export interface LogNames {
  readonly repositories: ReadonlyMap<RepositoryId, string>;
  readonly tokens: ReadonlyMap<AccessTokenId, string>;
}

export interface NamedInLog {
  readonly repositories: readonly RepositoryId[];
  readonly tokens: readonly AccessTokenId[];
}

/** Tokens that are folded at the same time. */
const FOLDED_AT_ONCE = 8;

export async function namesInLog(
  { entities }: Pick<Context, 'entities'>,
  account: AccountId,
  wanted: NamedInLog,
): Promise<LogNames> {
  const { state } = await entities.get(accounts, account);
  const owned = state.status === 'open' ? state.repositories : null;
  const repositories = new Map<RepositoryId, string>();
  for (const id of wanted.repositories) {
    const name = owned?.get(id)?.name;
    if (name !== undefined) repositories.set(id, name);
  }
  const tokens = new Map<AccessTokenId, string>();
  const limited = createConcurrencyLimit(FOLDED_AT_ONCE);
  const fold = async (id: AccessTokenId): Promise<void> => {
    const { state: token } = await entities.get(accessTokens, id);
    if (token.status === 'active' && token.account === account) tokens.set(id, token.name);
  };
  await Promise.all([...new Set(wanted.tokens)].map((id) => limited(() => fold(id))));
  return { repositories, tokens };
}
