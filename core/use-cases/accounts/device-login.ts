/**
 * Device login: a machine asks, a signed-in user grants or denies, one poll fetches the token.
 *
 * Must stay true: `DeviceLoginClaimed` is the commit point of the token. The poll that appended it made the secret and
 * alone can tell it; the token's event follows from what the claim says, so any node can write it. The answers rest on
 * the log and the session's own time, never on whether some timer has fired. What the device said of itself is
 * destroyed once the session ended, by whoever closes it.
 */
import type { AccessTokenSettings } from '../../access-token/commands.ts';
import { decideAccessToken } from '../../access-token/decide.ts';
import type { AccessTokenEvent } from '../../access-token/events.ts';
import { accessTokens } from '../../access-token/evolve.ts';
import { accounts } from '../../account/evolve.ts';
import type { DeviceSessionCommand } from '../../device-session/commands.ts';
import { claimRefusal, decideDeviceSession } from '../../device-session/decide.ts';
import { deviceSessions } from '../../device-session/evolve.ts';
import { accountOf, type DeviceSession, hasExpired, type PendingDeviceSession } from '../../device-session/state.ts';
import { accept, refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import { type AccountId, type DeviceSessionId, plusMs, type Timestamp, uuid } from '../../kernel/ids.ts';
import { DEVICE_HOSTNAME_LENGTH_MAX, DEVICE_SESSION_SPAN_MS } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { codePointCount } from '../../kernel/text.ts';
import type { Digest } from '../../ports/digest.ts';
import type { Reach } from '../../ports/failpoints.ts';
import type { Vault } from '../../ports/vault.ts';
import { type CreatedToken, ownership, type TokenCommandOrigin } from './access-tokens.ts';
import { TOKEN_PREFIX_LENGTH, tokenIdOf } from '../authenticate.ts';
import type { Entity } from '../../runtime/entity.ts';
import { type Context, execute } from '../../runtime/execute.ts';

type Refused = { readonly refused: Refusal };

export interface DeviceLoginRequest {
  /** What the device calls itself, 1 to 255 characters. */
  readonly hostname: string;
  /** Where it asks from; empty where that is not known. */
  readonly address: string;
  /** Shown on both screens, `WXYZ-1234`. */
  readonly userCode: string;
  /** What polls must carry; the caller generated it and tells the device alone. */
  readonly secret: string;
}

/** Begins a login. The records of the vault come before the event that names them (invariant 5). */
export async function requestDeviceLogin(
  context: Context & { readonly digest: Digest; readonly vault: Pick<Vault, 'put'> },
  cause: Cause,
  { hostname, address, userCode, secret }: DeviceLoginRequest,
): Promise<{ readonly id: DeviceSessionId; readonly expiresAt: Timestamp } | Refused> {
  const length = codePointCount(hostname);
  if (length < 1 || length > DEVICE_HOSTNAME_LENGTH_MAX) return refuse({ code: 'device-hostname-length' });
  const id = context.ids.next<DeviceSessionId>();
  const owner = vaultOwnerOf(id);
  const hostnameRef = await context.vault.put(owner, 'hostname', hostname);
  const addressRef = address === '' ? null : await context.vault.put(owner, 'source-address', address);
  const secretHash = context.digest.sha256(secret);
  const expiresAt = plusMs(context.clock.now(), DEVICE_SESSION_SPAN_MS);
  const requested = await execute(context, deviceSessions, id, { account: null, cause }, (state) =>
    decideDeviceSession(state, {
      type: 'RequestDeviceLogin',
      ...{ userCode, secretHash, hostnameRef, addressRef, expiresAt },
    }),
  );
  return 'refused' in requested ? requested : { id, expiresAt };
}

/** While nobody has taken a session on it has a data key of its own in the vault, under its own id. */
function vaultOwnerOf(id: DeviceSessionId): AccountId {
  return uuid<AccountId>(id);
}

/** What a user is shown before deciding. */
export interface ShownDeviceSession {
  readonly userCode: string;
  readonly hostname: string;
  readonly address: string | null;
  readonly expiresAt: Timestamp;
}

/** A session that may be granted or denied now, or why there is none. The caller awaited the barrier. */
export async function showDeviceSession(
  context: Context & { readonly vault: Pick<Vault, 'get'> },
  id: DeviceSessionId,
): Promise<ShownDeviceSession | Refused> {
  const { state } = await context.entities.get(deviceSessions, id);
  if (state.status === 'absent') return refuse({ code: 'device-session-not-found' });
  if (state.status !== 'pending') return refuse({ code: 'device-session-decided' });
  if (hasExpired(state, context.clock.now())) return refuse({ code: 'device-session-expired' });
  return readShown(context.vault, id, state);
}

async function readShown(
  vault: Pick<Vault, 'get'>,
  id: DeviceSessionId,
  { userCode, hostnameRef, addressRef, expiresAt }: PendingDeviceSession,
): Promise<ShownDeviceSession | Refused> {
  const owner = vaultOwnerOf(id);
  const hostname = await vault.get(owner, 'hostname', hostnameRef);
  // Its record goes once the session ended: somebody was faster.
  if (hostname === null) return refuse({ code: 'device-session-decided' });
  const address = addressRef === null ? null : await vault.get(owner, 'source-address', addressRef);
  return { userCode, hostname, address, expiresAt };
}

/** Lets the device have a token with these settings; refuses what a new token may not carry. */
export async function grantDeviceLogin(
  context: Context,
  origin: TokenCommandOrigin,
  id: DeviceSessionId,
  settings: AccessTokenSettings,
): Promise<{ readonly settings: AccessTokenSettings } | Refused> {
  const { account } = origin;
  const ownsRepository = await ownership(context, account);
  if (ownsRepository === null) return refuse({ code: 'account-not-found' });
  const executed = await execute(context, deviceSessions, id, origin, (state) =>
    decideDeviceSession(state, {
      type: 'GrantDeviceLogin',
      ...{ account, settings, ownsRepository, now: context.clock.now() },
    }),
  );
  if ('refused' in executed) return executed;
  const { state } = executed.entity;
  if (state.status !== 'granted') throw new TypeError('A login that was just granted is not');
  return { settings: state.settings };
}

export async function denyDeviceLogin(
  context: Context,
  origin: TokenCommandOrigin,
  id: DeviceSessionId,
): Promise<{ readonly denied: DeviceSessionId } | Refused> {
  const { account } = origin;
  const executed = await execute(context, deviceSessions, id, origin, (state) =>
    decideDeviceSession(state, { type: 'DenyDeviceLogin', account, now: context.clock.now() }),
  );
  return 'refused' in executed ? executed : { denied: id };
}

/** The session that a poll is about; another's secret and no session answer alike. The caller awaited the barrier. */
export async function findPolledSession(
  context: Context & { readonly digest: Digest },
  id: DeviceSessionId,
  secret: string,
): Promise<{ readonly id: DeviceSessionId; readonly state: Exclude<DeviceSession, { status: 'absent' }> } | Refused> {
  const { state } = await context.entities.get(deviceSessions, id);
  const found = state.status !== 'absent' && context.digest.equal(state.secretHash, context.digest.sha256(secret));
  return found ? { id, state } : refuse({ code: 'device-session-not-found' });
}

export interface PolledToken extends CreatedToken {
  readonly username: string;
  /** Told here, once, and nowhere kept. */
  readonly secret: string;
}

type PolledSession = Exclude<Awaited<ReturnType<typeof findPolledSession>>, Refused>;

type PollContext = Context & {
  readonly digest: Digest;
  readonly reach: Reach;
  readonly newTokenSecret: () => string;
};

/**
 * Answers a poll: the token for the one that claims it, null while the session waits for its user.
 * `causeFor` gives the cause of the account's events, once it is known whose they are.
 */
export async function pollDeviceLogin(
  context: PollContext,
  causeFor: (account: AccountId) => Promise<Cause>,
  { id, state }: PolledSession,
): Promise<PolledToken | Refused | null> {
  const refused = claimRefusal(state, context.clock.now());
  if (refused?.code === 'device-login-pending') return null;
  if (refused !== null || state.status !== 'granted') return refuse(refused ?? { code: 'device-session-not-found' });
  const { account } = state;
  const owner = await context.entities.get(accounts, account);
  // An account that was erased since takes no device on.
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
  await context.reach('device-login-claimed');
  const token = await createClaimedToken(context, cause, claimed.entity);
  return token === null ? refuse({ code: 'device-login-claimed' }) : { ...token, username, secret };
}

/**
 * Writes the token that a claim names, unless it is there. Nothing refuses it: the claim was the decision. Null for
 * one that its owner has revoked meanwhile.
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
          ...{ account, settings, secretHash: tokenSecretHash, tokenPrefix },
          // As they stood when the login was granted and claimed.
          ownsRepository: () => true,
          now: claimedAt,
        })
      : accept<AccessTokenEvent>(),
  );
  if ('refused' in created) throw new TypeError(`A claimed token was refused: ${created.refused.code}`);
  const token = created.entity.state;
  return token.status === 'active' ? { id: tokenId, token } : null;
}

/** Writes that the session's time ran out, if it did and nobody claimed or denied it. */
export async function expireDeviceLogin(context: Context, cause: Cause, id: DeviceSessionId): Promise<void> {
  const { state } = await context.entities.reload(deviceSessions, id);
  await changeSession(context, cause, id, state, { type: 'ExpireDeviceLogin', now: context.clock.now() });
}

/**
 * Does whatever still follows the end of a session and closes it: writes a claimed token, destroys what the device
 * said of itself. Repeatable: any node may, at any time after the end. A session that has not ended is left alone.
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
  await context.vault.eraseAccount(vaultOwnerOf(id));
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
