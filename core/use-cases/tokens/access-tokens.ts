/** Creates, changes and revokes access tokens. */
import type { AccessTokenSettings } from '../../access-token/commands.ts';
import { decideAccessToken } from '../../access-token/decide.ts';
import { accessTokens } from '../../access-token/evolve.ts';
import { type AccessToken, type ActiveAccessToken, isExpired } from '../../access-token/state.ts';
import { accounts } from '../../account/evolve.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccessTokenId, AccountId, RepositoryId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';
import { TOKEN_PREFIX_LENGTH, tokenIdOf } from '../callers/authenticate.ts';

export interface TokenCommandOrigin {
  readonly account: AccountId;
  readonly cause: Cause;
  /** Absent for operators, who act without a token. */
  readonly guarding?: Guarding;
}

export interface CreatedToken {
  readonly id: AccessTokenId;
  readonly token: ActiveAccessToken;
}

/** Creates a token for a secret that the caller generated. Only its hash and its first characters are stored. */
export async function createAccessToken(
  context: Context & { readonly digest: Digest },
  origin: TokenCommandOrigin,
  settings: AccessTokenSettings,
  secret: string,
): Promise<CreatedToken | { readonly refused: Refusal }> {
  const ownsRepository = await ownership(context, origin.account);
  if (ownsRepository === null) return refuse({ code: 'account-not-found' });
  const secretHash = context.digest.sha256(secret);
  const id = tokenIdOf(context.ids, secretHash);
  const executed = await execute(context, accessTokens, id, origin, (state) =>
    decideAccessToken(state, {
      type: 'CreateAccessToken',
      account: origin.account,
      settings,
      ownsRepository,
      secretHash,
      tokenPrefix: secret.slice(0, TOKEN_PREFIX_LENGTH),
      now: context.clock.now(),
    }),
  );
  if ('refused' in executed) return executed;
  return { id, token: active(executed.entity.state) };
}

/** Finds the account's token unless it has expired. An unknown token and another account's get the same refusal. */
export async function findAccessToken(
  context: Context,
  account: AccountId,
  id: AccessTokenId,
): Promise<ActiveAccessToken | { readonly refused: Refusal }> {
  const { state } = await context.entities.get(accessTokens, id);
  const found = state.status === 'active' && state.account === account && !isExpired(state, context.clock.now());
  return found ? state : refuse({ code: 'token-not-found' });
}

export async function updateAccessToken(
  context: Context,
  origin: TokenCommandOrigin,
  id: AccessTokenId,
  changes: Partial<AccessTokenSettings>,
): Promise<CreatedToken | { readonly refused: Refusal }> {
  const ownsRepository = await ownership(context, origin.account);
  if (ownsRepository === null) return refuse({ code: 'account-not-found' });
  const executed = await execute(context, accessTokens, id, origin, (state) =>
    state.status === 'active' && state.account === origin.account
      ? decideAccessToken(state, { type: 'UpdateAccessToken', changes, ownsRepository, now: context.clock.now() })
      : refuse({ code: 'token-not-found' }),
  );
  return 'refused' in executed ? executed : { id, token: active(executed.entity.state) };
}

export async function revokeAccessToken(
  context: Context,
  origin: TokenCommandOrigin,
  id: AccessTokenId,
): Promise<{ readonly refused: Refusal } | { readonly revoked: AccessTokenId }> {
  const executed = await execute(context, accessTokens, id, origin, (state) =>
    'account' in state && state.account === origin.account
      ? decideAccessToken(state, { type: 'RevokeAccessToken' })
      : refuse({ code: 'token-not-found' }),
  );
  return 'refused' in executed ? executed : { revoked: id };
}

/** Returns a function that is true for the ids of the account's current repositories; null if it is not open. */
export async function ownership(context: Context, account: AccountId): Promise<((id: RepositoryId) => boolean) | null> {
  const { state } = await context.entities.get(accounts, account);
  return state.status === 'open' ? (id) => state.repositories.has(id) : null;
}

function active(state: AccessToken): ActiveAccessToken {
  if (state.status !== 'active') throw new TypeError('A token that was just written is not active');
  return state;
}
