/** Makes accounts, tokens and repositories through the use cases, on a test node or on a server's foundation. */
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import { newWebhookSecret } from '../../adapters/node/webhook-secret.ts';
import type { AccessTokenSettings } from '../../core/access-token/commands.ts';
import { ALL_REPOSITORIES } from '../../core/access-token/repository-selection.ts';
import type { Plan } from '../../core/account/plans.ts';
import type { SpellDomain } from '../../core/kernel/domain-spellings.ts';
import type { AccessTokenId, AccountId, WebhookId } from '../../core/kernel/ids.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import { createAccount } from '../../core/use-cases/accounts/accounts.ts';
import { authenticate as authenticateRead, readSecret } from '../../core/use-cases/callers/authenticate.ts';
import type { TokenPrincipal } from '../../core/use-cases/callers/principal.ts';
import { createRepository, type FoundRepository } from '../../core/use-cases/repositories/repositories.ts';
import { createAccessToken } from '../../core/use-cases/tokens/access-tokens.ts';
import { createWebhook } from '../../core/use-cases/webhooks/webhooks.ts';
import { CAUSE, type TestNode } from './node.ts';

/** Older versions mapped no domain, so that each spelling was an address of its own. */
export const EACH_SPELLING_ITS_OWN: SpellDomain = (domain) => ({
  ascii: domain.toLowerCase(),
  unicode: domain.toLowerCase(),
});

/** Returns the result; throws if it is a refusal. */
export function accepted<Result extends object>(result: Result | { readonly refused: Refusal }): Result {
  if ('refused' in result) throw new Error(`Refused: ${JSON.stringify(result.refused)}`);
  return result;
}

/** Returns the code of a refusal, or null when the result is not a refusal. */
export function codeOf(result: object): string | null {
  return 'refused' in result ? (result.refused as { readonly code: string }).code : null;
}

/** Authenticates as a request does. */
export async function authenticate(
  context: Parameters<typeof authenticateRead>[0],
  secret: string,
): Promise<TokenPrincipal | null> {
  const read = readSecret(context, secret);
  return read === null ? null : authenticateRead(context, read);
}

/** Counts the results by refusal code; counts those that were not refused under `created`. */
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

/** Makes a webhook that is told of every push of the account. */
export async function newWebhook(node: TestNode, account: AccountId): Promise<WebhookId> {
  const outgoing = { check: async () => null, send: () => Promise.reject(new Error('Nothing is sent here')) };
  const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
  const wanted = { url: 'https://receiver.example/', events: ['push', 'create', 'delete'] as const, active: true };
  return accepted(await createWebhook({ ...node, outgoing }, origin, wanted, newWebhookSecret())).webhook.id;
}
