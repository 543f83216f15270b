/**
 * Device login after its decision: one poll fetches the token, and the workflow ends the login.
 *
 * Invariants: `DeviceLoginClaimed` is the commit point of the token. Only the poll that appended it has the secret,
 * because that poll generated it. The token's event is made from the claim alone, so any node can write it. Answers
 * depend on the request's row, on the log and on the session's times, never on whether a timer has fired.
 */
import { decideAccessToken } from '../../access-token/decide.ts';
import type { AccessTokenEvent } from '../../access-token/events.ts';
import { accessTokens } from '../../access-token/evolve.ts';
import { accounts } from '../../account/evolve.ts';
import type { DeviceSessionCommand } from '../../device-session/commands.ts';
import { claimRefusal, decideDeviceSession } from '../../device-session/decide.ts';
import { deviceSessions } from '../../device-session/evolve.ts';
import { accountOf, type DeviceSession, hasExpired } from '../../device-session/state.ts';
import { accept, refuse } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId, DeviceSessionId, Timestamp } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { DeviceLoginRequest, DeviceLoginRequests } from '../../ports/device-login-requests.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { Vault } from '../../ports/vault.ts';
import type { Entity } from '../../runtime/entity.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { TOKEN_PREFIX_LENGTH, tokenIdOf } from '../callers/authenticate.ts';
import type { CreatedToken } from './access-tokens.ts';
import { vaultOwnerOf } from './device-login.ts';

type Refused = { readonly refused: Refusal };

/** A session whose secret a poll has shown. */
export interface PolledSession {
  readonly id: DeviceSessionId;
  readonly state: DeviceSession;
  /** Null for a stream that began with the request. */
  readonly request: DeviceLoginRequest | null;
}

/**
 * Finds the session that a poll names. A wrong secret and an unknown session get the same refusal. The caller must have
 * awaited `entities.barrier()`.
 */
export async function findPolledSession(
  context: Context & { readonly digest: Digest; readonly deviceRequests: Pick<DeviceLoginRequests, 'find'> },
  id: DeviceSessionId,
  secret: string,
): Promise<PolledSession | Refused> {
  const hash = context.digest.sha256(secret);
  const request = await context.deviceRequests.find(id);
  if (request !== null && !context.digest.equal(request.secretHash, hash)) return NOT_FOUND;
  const { state } = await context.entities.get(deviceSessions, id);
  if (request !== null) return { id, state, request };
  if (state.status === 'absent' || state.secretHash === null) return NOT_FOUND;
  return context.digest.equal(state.secretHash, hash) ? { id, state, request: null } : NOT_FOUND;
}

const NOT_FOUND = refuse({ code: 'device-session-not-found' });

export interface PolledToken extends CreatedToken {
  readonly username: string;
  /** Returned only here, once. It is stored nowhere. */
  readonly secret: string;
}

type PollContext = Context & {
  readonly digest: Digest;
  readonly failpoint: Failpoint;
  readonly newTokenSecret: () => string;
};

/**
 * Answers a poll: returns the token to the one poll that claims it, and null while the session waits for its user.
 * `causeFor` returns the cause for the account's events. It is called when the account is known.
 */
export async function pollDeviceLogin(
  context: PollContext,
  causeFor: (account: AccountId) => Promise<Cause>,
  session: PolledSession,
): Promise<PolledToken | Refused | null> {
  const { id, state } = session;
  const refused = pollRefusal(session, context.clock.now());
  if (refused?.code === 'device-login-pending') return null;
  if (refused !== null || state.status !== 'granted') return refuse(refused ?? { code: 'device-session-not-found' });
  const { account } = state;
  const owner = await context.entities.get(accounts, account);
  // An account that is no longer open gets no new token.
  if (owner.state.status !== 'open') return refuse({ code: 'device-session-expired' });
  const { username } = owner.state;
  const cause = await causeFor(account);
  const secret = context.newTokenSecret();
  const tokenSecretHash = context.digest.sha256(secret);
  const claimed = await execute(context, deviceSessions, id, { account, cause }, (current) =>
    decideDeviceSession(current, {
      type: 'ClaimDeviceLogin',
      tokenId: tokenIdOf(context.ids, tokenSecretHash),
      tokenSecretHash,
      tokenPrefix: secret.slice(0, TOKEN_PREFIX_LENGTH),
      now: context.clock.now(),
    }),
  );
  if ('refused' in claimed) return claimed;
  await context.failpoint('device-login-claimed');
  const token = await createClaimedToken(context, cause, claimed.entity);
  return token === null ? refuse({ code: 'device-login-claimed' }) : { ...token, username, secret };
}

/** Returns why the poll gets no token now; null if it may claim it. */
function pollRefusal({ state, request }: PolledSession, now: Timestamp): Refusal | null {
  if (state.status !== 'absent' || request === null) return claimRefusal(state, now);
  return { code: hasExpired(request, now) ? 'device-session-expired' : 'device-login-pending' };
}

/**
 * Writes the token that a claim names, unless it exists. It cannot be refused, because the claim decided it. Returns
 * null if the owner has revoked the token since.
 */
async function createClaimedToken(
  context: Context,
  cause: Cause,
  { state, lastEventId }: Entity<DeviceSession>,
): Promise<CreatedToken | null> {
  if (state.status !== 'claimed') throw new TypeError(`A token for a device login that is ${state.status}`);
  const { account, settings, tokenId, tokenSecretHash, tokenPrefix, claimedAt } = state;
  const about = { account, cause: { ...cause, causationId: lastEventId } };
  const created = await execute(context, accessTokens, tokenId, about, (token) =>
    token.status === 'absent'
      ? decideAccessToken(token, {
          type: 'CreateAccessToken',
          account,
          settings,
          secretHash: tokenSecretHash,
          tokenPrefix,
          // The repositories were checked at the grant, and the expiry is checked as of the claim.
          ownsRepository: () => true,
          now: claimedAt,
        })
      : accept<AccessTokenEvent>(),
  );
  if ('refused' in created) throw new TypeError(`A claimed token was refused: ${created.refused.code}`);
  const token = created.entity.state;
  return token.status === 'active' ? { id: tokenId, token } : null;
}

/** Appends `DeviceLoginExpired` if the session's time is over and nobody has claimed or denied it. */
export async function expireDeviceLogin(context: Context, cause: Cause, id: DeviceSessionId): Promise<void> {
  const { state } = await context.entities.reload(deviceSessions, id);
  await changeSession(context, cause, id, state, { type: 'ExpireDeviceLogin', now: context.clock.now() });
}

/**
 * Finishes a session that has ended and closes it: writes a claimed token, and destroys the vault records that a
 * session of an older version has of its own. Idempotent: any node may call it, at any time. It does nothing to a
 * session that has not ended.
 */
export async function closeDeviceLogin(
  context: Context & { readonly vault: Pick<Vault, 'eraseAccount'> },
  cause: Cause,
  id: DeviceSessionId,
): Promise<void> {
  const session = await context.entities.reload(deviceSessions, id);
  const { state } = session;
  if (state.status !== 'claimed' && state.status !== 'denied' && state.status !== 'expired') return;
  if (state.status === 'claimed') await createClaimedToken(context, cause, session);
  // A stream that begins with the decision has no vault records of its own: it refers to those of the account.
  if (state.secretHash !== null) await context.vault.eraseAccount(vaultOwnerOf(id));
  await changeSession(context, cause, id, state, { type: 'CloseDeviceLogin' });
}

async function changeSession(
  context: Context,
  cause: Cause,
  id: DeviceSessionId,
  state: DeviceSession,
  command: DeviceSessionCommand,
): Promise<void> {
  const changed = await execute(context, deviceSessions, id, { account: accountOf(state), cause }, (current) =>
    decideDeviceSession(current, command),
  );
  if ('refused' in changed) throw new TypeError(`The end of a device login was refused: ${changed.refused.code}`);
}
