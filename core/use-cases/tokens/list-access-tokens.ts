/** Reads access tokens with the time of their last use. */
import { refuse } from '../../kernel/decider.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccessTokenId, AccountId, Timestamp } from '../../kernel/ids.ts';
import { ACCESS_TOKENS_MAX, TOKENS_REPOSITORIES_MAX } from '../../kernel/limits.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AccessTokenLists, AccessTokenRow } from '../../ports/access-token-lists.ts';
import type { Clock } from '../../ports/clock.ts';
import type { LastUse } from '../../ports/last-use.ts';
import type { ReadModelProgress } from '../../ports/read-models.ts';
import type { Context } from '../../runtime/execute.ts';
import { findAccessToken } from './access-tokens.ts';

export interface LastUseContext {
  readonly lastUse: Pick<LastUse, 'lastUsedAt'>;
}

export interface ListAccessTokensContext extends Pick<Context, 'clock'>, LastUseContext {
  readonly readModels: ReadModelProgress & AccessTokenLists;
}

export interface AccessTokenWithLastUse {
  readonly token: AccessTokenRow;
  /** To the minute; null if it was never used. */
  readonly lastUsedAt: Timestamp | null;
}

/**
 * Lists the tokens that are neither revoked nor expired, newest first: those of the page, or all. The list includes the
 * log up to `seen`.
 */
export async function listAccessTokens(
  context: ListAccessTokensContext,
  account: AccountId,
  seen: LogPosition,
  page: Page | null = null,
): Promise<PageOf<AccessTokenWithLastUse>> {
  await context.readModels.caughtUp(seen);
  const tokens = await context.readModels.accessTokens(account, context.clock.now());
  const wanted = page === null ? tokens : tokens.slice(page.offset, page.offset + page.limit);
  return { items: await withLastUse(context, wanted), total: tokens.length };
}

/** A token that is about to list this many repositories: a new one, or one that `changed` names. */
export interface WantedToken {
  readonly account: AccountId;
  readonly repositories: number;
  readonly changed: AccessTokenId | null;
}

/**
 * Refused with `token-limit-reached` if the account has as many tokens as it may, or with `token-repositories-reached`
 * if its tokens list as many repositories in sum. The list may lag a little, so that creations which race each other
 * may exceed both.
 */
export async function refuseBeyondTokens(
  {
    readModels,
    clock,
  }: { readonly readModels: Pick<AccessTokenLists, 'accessTokenSums'>; readonly clock: Pick<Clock, 'now'> },
  { account, repositories, changed }: WantedToken,
): Promise<{ readonly refused: Refusal } | null> {
  // A change that lists no repositories adds nothing, so that a token can always be narrowed.
  if (changed !== null && repositories === 0) return null;
  const others = await readModels.accessTokenSums(account, clock.now(), changed);
  if (changed === null && others.tokens >= ACCESS_TOKENS_MAX) return refuse({ code: 'token-limit-reached' });
  const exceeds = repositories > 0 && others.repositories + repositories > TOKENS_REPOSITORIES_MAX;
  return exceeds ? refuse({ code: 'token-repositories-reached' }) : null;
}

/** Refused with `token-not-found`, both for an unknown token and for another account's. */
export async function readAccessToken(
  context: Context & LastUseContext,
  account: AccountId,
  id: AccessTokenId,
): Promise<AccessTokenWithLastUse | { readonly refused: Refusal }> {
  const found = await findAccessToken(context, account, id);
  return 'refused' in found ? found : addLastUse(context, { id, ...found });
}

/** Adds the time of its last use to a token that was just written. */
export async function addLastUse(context: LastUseContext, token: AccessTokenRow): Promise<AccessTokenWithLastUse> {
  const lastUsed = await context.lastUse.lastUsedAt([token.id]);
  return { token, lastUsedAt: lastUsed.get(token.id) ?? null };
}

async function withLastUse(
  { lastUse }: LastUseContext,
  tokens: readonly AccessTokenRow[],
): Promise<readonly AccessTokenWithLastUse[]> {
  const lastUsed = await lastUse.lastUsedAt(tokens.map(({ id }) => id));
  return tokens.map((token) => ({ token, lastUsedAt: lastUsed.get(token.id) ?? null }));
}
