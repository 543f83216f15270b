/**
 * Finds the principal of an access token's secret, and the person of a session.
 *
 * Invariants: the token's id is derived from its secret, or stands in it if the token was exchanged, so one stream of
 * the log is enough to find it. A token that was exchanged is valid only while its trust rule is unchanged. The caller
 * must have awaited `entities.barrier()`: then every node refuses a token that was revoked or has expired, and a
 * session that has ended, at its next request.
 */
import { accessTokens } from '../../access-token/evolve.ts';
import { idInSecret } from '../../access-token/exchanged-secret.ts';
import { isSecretForm } from '../../access-token/secret.ts';
import { type AccessToken, isExpired } from '../../access-token/state.ts';
import { accounts } from '../../account/evolve.ts';
import type { Plan } from '../../account/plans.ts';
import { type Account, sessionEpochOf } from '../../account/state.ts';
import type { Digest } from '../../kernel/digest.ts';
import { type AccessTokenId, type AccountId, type Timestamp, uuid } from '../../kernel/ids.ts';
import { type MaybePromise, whenReady } from '../../kernel/maybe-promise.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Ids } from '../../ports/clock.ts';
import type { Context, Guarding } from '../../runtime/execute.ts';
import type {
  AccessTokenPrincipal,
  ExchangedTokenPrincipal,
  Principal,
  SessionPrincipal,
  TokenPrincipal,
} from './principal.ts';

export const TOKEN_PREFIX_LENGTH = 'strata_'.length + 4;

/** Namespace of token ids. An id is the UUID version 5 of this namespace and the secret's SHA-256. */
const TOKEN_ID_NAMESPACE = uuid('6f1c1f3e-4c5b-5d0e-9a35-2b8f5f0f7a11');

export function tokenIdOf(ids: Pick<Ids, 'derive'>, secretHash: string): AccessTokenId {
  return ids.derive<AccessTokenId>(TOKEN_ID_NAMESPACE, secretHash);
}

/** A secret's digest, and the ids of the tokens that may have it. */
export interface ReadSecret {
  /** SHA-256, hex. */
  readonly hash: string;
  /** The id of a token that was created: derived from the whole secret, so no other secret has it. */
  readonly derived: AccessTokenId;
  /** The id of a token that was exchanged: the secret names it. Null if the secret cannot be that of one. */
  readonly named: AccessTokenId | null;
}

/** Returns null for what is no secret. Reads nothing. */
export function readSecret(
  { ids, digest }: { readonly ids: Pick<Ids, 'derive'>; readonly digest: Digest },
  secret: string,
): ReadSecret | null {
  if (!isSecretForm(digest.crc32, secret)) return null;
  const hash = digest.sha256(secret);
  return { hash, derived: tokenIdOf(ids, hash), named: idInSecret(secret) };
}

/** Called with the token that a secret names or is, if there is or was one. The secret may be another than its own. */
export type NoteToken = (tokenId: AccessTokenId, token: Exclude<AccessToken, { readonly status: 'absent' }>) => void;

/** Returns null for an unknown, expired or revoked token, and for a token of an account that is not open. */
export function authenticate(
  context: Context & { readonly digest: Digest },
  { hash, derived, named }: ReadSecret,
  noteToken?: NoteToken,
): MaybePromise<TokenPrincipal | null> {
  if (named === null) return principalOfToken(context, derived, hash, noteToken);
  // Whoever knows an id can make secrets that name it. Each costs a read of this one token, and of no other.
  return whenReady(
    context.entities.get(accessTokens, named),
    ({ state }): MaybePromise<TokenPrincipal | null> =>
      state.status === 'absent'
        ? principalOfToken(context, derived, hash, noteToken)
        : principalOfExchanged(context, named, hash, noteToken),
  );
}

function principalOfToken(
  context: Context & { readonly digest: Digest },
  tokenId: AccessTokenId,
  secretHash: string,
  noteToken?: NoteToken,
): MaybePromise<AccessTokenPrincipal | null> {
  return whenReady(context.entities.get(accessTokens, tokenId), ({ state: token, stream, revision }) => {
    if (token.status !== 'absent') noteToken?.(tokenId, token);
    if (token.status !== 'active' || !context.digest.equal(token.secretHash, secretHash)) return null;
    return whenReady(context.entities.get(accounts, token.account), (owner) => {
      // The tokens of an erased account are not revoked one by one. They are refused because the account is not open.
      if (owner.state.status !== 'open') return null;
      const guards = [{ stream, revision }];
      return unlessExpired(context, { kind: 'access-token', account: token.account, tokenId, token, guards });
    });
  });
}

function principalOfExchanged(
  context: Context & { readonly digest: Digest },
  tokenId: AccessTokenId,
  secretHash: string,
  noteToken?: NoteToken,
): MaybePromise<ExchangedTokenPrincipal | null> {
  return whenReady(context.entities.get(accessTokens, tokenId), (entity) => {
    const token = entity.state;
    if (token.status !== 'absent') noteToken?.(tokenId, token);
    if (token.status !== 'exchanged' || !context.digest.equal(token.secretHash, secretHash)) return null;
    const { account, trustRule } = token;
    return whenReady(context.entities.get(accounts, account), (owner) => {
      // Every change of the rule ends the tokens that it gave out, and so does its deletion.
      const isCurrent =
        owner.state.status === 'open' && owner.state.trustRules.get(trustRule.id)?.epoch === trustRule.epoch;
      if (!isCurrent) return null;
      const guards = [entity, owner].map(({ stream, revision }) => ({ stream, revision }));
      return unlessExpired(context, { kind: 'exchanged-token', account, tokenId, token, guards });
    });
  });
}

function unlessExpired<Caller extends TokenPrincipal>(
  context: Pick<Context, 'clock'>,
  principal: Caller,
): Caller | null {
  return isExpired(principal.token, context.clock.now()) ? null : principal;
}

/** A token that has ended, and whose secret somebody sent all the same. */
export interface EndedToken {
  readonly account: AccountId;
  readonly tokenId: AccessTokenId;
  readonly ended: 'token-expired' | 'token-revoked';
}

/**
 * Returns which end a token has come to whose secret `authenticate` has refused; null if the secret is not its own, or
 * its account is erased. Reads the account at most, and nothing of what never was a token.
 */
export function endOf(
  context: Context & { readonly digest: Digest },
  { hash, named }: ReadSecret,
  [tokenId, token]: Parameters<NoteToken>,
): MaybePromise<EndedToken | null> {
  // Whoever knows an id can make secrets that name it, and nothing is left of a revoked one to compare with.
  const isOwn = token.status === 'revoked' ? tokenId !== named : context.digest.equal(token.secretHash, hash);
  if (!isOwn) return null;
  const { account } = token;
  return whenReady(context.entities.get(accounts, account), ({ state }): EndedToken | null => {
    if (state.status !== 'open' && state.status !== 'closed') return null;
    if (token.status === 'revoked') return { account, tokenId, ended: 'token-revoked' };
    if (isExpired(token, context.clock.now())) return { account, tokenId, ended: 'token-expired' };
    // The token of a closed account has not ended, since the account may be opened again.
    const isOfChangedRule = token.status === 'exchanged' && state.status === 'open';
    return isOfChangedRule ? { account, tokenId, ended: 'token-revoked' } : null;
  });
}

/** What a session keeps of its person. A caller vouches for it: it comes from the store of sessions. */
export interface SessionOf {
  readonly account: AccountId;
  /** The session epoch of the account in which the session began. */
  readonly epoch: number;
}

/** The person of a valid session. One whose account is closed may only reopen it, until `eraseAt`. */
export type Person =
  | {
      readonly status: 'open';
      readonly principal: SessionPrincipal;
      readonly plan: Plan;
      readonly hasBuckets: boolean;
    }
  | {
      readonly status: 'closed';
      readonly account: AccountId;
      readonly username: string;
      readonly epoch: number;
      readonly eraseAt: Timestamp;
    };

/** Returns null for a session that has ended: its epoch is over, or its account is erased or soon will be. */
export async function identifyPerson(context: Context, { account, epoch }: SessionOf): Promise<Person | null> {
  const { state, stream, revision } = await context.entities.get(accounts, account);
  if (!isEnterable(state, context.clock.now()) || sessionEpochOf(state) !== epoch) return null;
  const { username } = state;
  if (state.status === 'closed') return { status: 'closed', account, username, epoch, eraseAt: state.eraseAt };
  const principal: SessionPrincipal = { kind: 'session', account, username, epoch, guard: { stream, revision } };
  return { status: 'open', principal, plan: state.plan, hasBuckets: state.storageBuckets.size > 0 };
}

/** Returns true for an account that its owner may sign in to: it is open, or closed and can still be reopened. */
export function isEnterable(
  state: Account,
  now: Timestamp,
): state is Extract<Account, { readonly status: 'open' | 'closed' }> {
  return state.status === 'open' || (state.status === 'closed' && now < state.eraseAt);
}

/**
 * Returns the guard that makes an append depend on its caller: at the commit the principal must still be valid, and
 * `stillAllowed` must return true for it (docs/architecture.md, Guards).
 */
export function guardedBy(
  context: Context & { readonly digest: Digest },
  principal: Principal,
  stillAllowed: (principal: Principal) => boolean,
): Guarding {
  let first = true;
  return async () => {
    const now = first ? unlessEnded(context, principal) : await readAgain(context, principal);
    first = false;
    if (now === null || !stillAllowed(now)) return { refused: noLongerValid(principal) };
    return { guards: now.kind === 'session' ? [now.guard] : now.guards };
  };
}

export function noLongerValid({ kind }: Principal): Refusal {
  return { code: kind === 'session' ? 'session-no-longer-valid' : 'token-no-longer-valid' };
}

/** Expiry appends no event, so no guard can detect it: the time is checked here. */
function unlessEnded(context: Pick<Context, 'clock'>, principal: Principal): Principal | null {
  return principal.kind === 'session' ? principal : unlessExpired(context, principal);
}

/** Returns the principal of the same token or session at present; null if that is not valid any more. */
export async function readAgain(
  context: Context & { readonly digest: Digest },
  principal: Principal,
): Promise<Principal | null> {
  await context.entities.reload(accounts, principal.account);
  if (principal.kind === 'session') {
    const person = await identifyPerson(context, principal);
    return person?.status === 'open' ? person.principal : null;
  }
  const { kind, tokenId, token } = principal;
  await context.entities.reload(accessTokens, tokenId);
  return kind === 'access-token'
    ? principalOfToken(context, tokenId, token.secretHash)
    : principalOfExchanged(context, tokenId, token.secretHash);
}
