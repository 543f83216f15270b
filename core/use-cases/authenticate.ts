/**
 * From an access token's secret to what its bearer may do.
 *
 * Must stay true: the token's id is derived from its secret, so the log alone answers, by one stream; a
 * revoked or expired token is found so on every node at the next request (the caller awaited the barrier).
 */
import { accessTokens } from '../access-token/evolve.ts';
import { type ActiveAccessToken, isExpired, reaches } from '../access-token/state.ts';
import { accounts } from '../account/evolve.ts';
import { type AccessTokenId, type AccountId, type RepositoryId, uuid } from '../kernel/ids.ts';
import type { Ids } from '../ports/clock.ts';
import type { Digest } from '../ports/digest.ts';
import type { StreamGuard } from '../ports/event-store.ts';
import type { Context, Guarding } from '../runtime/execute.ts';

/** `strata_`, 40 base62 digits of secret, 6 of CRC-32 (interface.md, Access tokens). */
const SECRET_FORM = /^strata_[0-9A-Za-z]{46}$/;
export const TOKEN_PREFIX_LENGTH = 'strata_'.length + 4;

/** Namespace of token ids: v5 of it and the secret's SHA-256. */
const TOKEN_ID_NAMESPACE = uuid('6f1c1f3e-4c5b-5d0e-9a35-2b8f5f0f7a11');

export function tokenIdOf(ids: Pick<Ids, 'derive'>, secretHash: string): AccessTokenId {
  return ids.derive<AccessTokenId>(TOKEN_ID_NAMESPACE, secretHash);
}

/** The bearer of a token that was valid when it was looked at, at this revision of its stream. */
export interface Bearer {
  readonly tokenId: AccessTokenId;
  readonly token: ActiveAccessToken;
  readonly guard: StreamGuard;
}

/** Null for a malformed, unknown, expired or revoked token, and one of an erased account: all answer alike. */
export async function authenticate(
  context: Context & { readonly digest: Digest },
  secret: string,
): Promise<Bearer | null> {
  if (!SECRET_FORM.test(secret)) return null;
  const secretHash = context.digest.sha256(secret);
  return bearerOf(context, tokenIdOf(context.ids, secretHash), secretHash);
}

async function bearerOf(
  context: Context & { readonly digest: Digest },
  tokenId: AccessTokenId,
  secretHash: string,
): Promise<Bearer | null> {
  const entity = await context.entities.get(accessTokens, tokenId);
  const token = entity.state;
  if (token.status !== 'active' || !context.digest.equal(token.secretHash, secretHash)) return null;
  // An erased account's tokens die with it, unrevoked: nobody lists them for it.
  const owner = await context.entities.get(accounts, token.account);
  if (owner.state.status !== 'open') return null;
  return unlessExpired(context, { tokenId, token, guard: { stream: entity.stream, revision: entity.revision } });
}

function unlessExpired(context: Pick<Context, 'clock'>, bearer: Bearer): Bearer | null {
  return isExpired(bearer.token, context.clock.now()) ? null : bearer;
}

/**
 * Whether the bearer may know of the repository at all: it is its account's, and in its scope. To a bearer for
 * whom this is false, the repository and one that does not exist must answer alike.
 */
export function sees(
  bearer: Bearer,
  repository: { readonly id: RepositoryId; readonly accountId: AccountId },
): boolean {
  return bearer.token.account === repository.accountId && reaches(bearer.token, repository.id);
}

/**
 * The guard that makes an append depend on the bearer's token: it must still be valid and still allow the
 * operation at the moment of the commit (architecture, Guards).
 */
export function guardedBy(
  context: Context & { readonly digest: Digest },
  bearer: Bearer,
  stillAllowed: (bearer: Bearer) => boolean,
): Guarding {
  let first = true;
  return async () => {
    if (!first) {
      await context.entities.reload(accessTokens, bearer.tokenId);
      await context.entities.reload(accounts, bearer.token.account);
    }
    // Time ends a token too, and leaves no event that a guard could lose its race to.
    const now = first
      ? unlessExpired(context, bearer)
      : await bearerOf(context, bearer.tokenId, bearer.token.secretHash);
    first = false;
    if (now === null || !stillAllowed(now)) return { refused: { code: 'token-no-longer-valid' } };
    return { guards: [now.guard] };
  };
}
