/** Accounts, tokens and repositories of a test node or a server's foundation, made by the use cases themselves. */
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import type { AccessTokenSettings } from '../../core/access-token/commands.ts';
import type { Plan } from '../../core/account/plans.ts';
import type { AccessTokenId, AccountId } from '../../core/kernel/ids.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import { createAccessToken } from '../../core/use-cases/accounts/access-tokens.ts';
import { createAccount } from '../../core/use-cases/accounts/accounts.ts';
import { createRepository, type FoundRepository } from '../../core/use-cases/accounts/repositories.ts';
import { CAUSE, type TestNode } from './node.ts';

/** The result, which must be no refusal. */
export function accepted<Result extends object>(result: Result | { readonly refused: Refusal }): Result {
  if ('refused' in result) throw new Error(`Refused: ${JSON.stringify(result.refused)}`);
  return result;
}

/** The code of a refusal; null when there was none. */
export function codeOf(result: object): string | null {
  return 'refused' in result ? (result.refused as { readonly code: string }).code : null;
}

/** How often each code came; `created` for what was not refused. */
export function codesOf(results: readonly object[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const result of results) {
    const code = codeOf(result) ?? 'created';
    counts[code] = (counts[code] ?? 0) + 1;
  }
  return counts;
}

export async function newAccount(
  node: Parameters<typeof createAccount>[0],
  username: string,
  plan: Plan = 'PRO',
): Promise<AccountId> {
  const wanted = { username, email: `${username}@example.org`, password: 'correct horse battery', plan };
  return accepted(await createAccount(node, CAUSE, wanted)).id;
}

export const TOKEN_SETTINGS: AccessTokenSettings = {
  name: 'test',
  scope: 'ALL_REPO',
  grants: ['ALL'],
  repositoryIds: [],
  expiresAt: null,
};

export async function newToken(
  node: Parameters<typeof createAccessToken>[0],
  account: AccountId,
  settings: Partial<AccessTokenSettings> = {},
): Promise<{ readonly id: AccessTokenId; readonly secret: string }> {
  const secret = newTokenSecret();
  const created = await createAccessToken(node, { account, cause: CAUSE }, { ...TOKEN_SETTINGS, ...settings }, secret);
  return { id: accepted(created).id, secret };
}

export async function newRepository(
  node: TestNode,
  account: AccountId,
  name: string,
  defaultBranch: string | null = null,
): Promise<FoundRepository> {
  const wanted = { name, description: null, defaultBranch, storageBucketId: null };
  return accepted(await createRepository(node, { account, cause: CAUSE }, wanted));
}
