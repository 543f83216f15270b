/**
 * Device login: a machine requests a login, a signed-in user grants or denies it, and one poll fetches the token.
 *
 * Must stay true: `DeviceLoginClaimed` is the commit point of the token. Only the poll that appended it has the secret,
 * because that poll generated it. The token's event is made from the claim alone, so any node can write it. Answers
 * depend on the log and on the session's times, never on whether a timer has fired. `closeDeviceLogin` destroys what
 * the device said about itself after the session has ended.
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
import type { Failpoint } from '../../ports/failpoints.ts';
import type { Vault } from '../../ports/vault.ts';
import { type CreatedToken, ownership, type TokenCommandOrigin } from './access-tokens.ts';
import { TOKEN_PREFIX_LENGTH, tokenIdOf } from './authenticate.ts';
import type { Entity } from '../../runtime/entity.ts';
import { type Context, execute } from '../../runtime/execute.ts';

type Refused = { readonly refused: Refusal };

export interface DeviceLoginRequest {
  /** The device's name for itself, 1 to 255 characters. */
  readonly hostname: string;
  /** The source address of the request; empty if it is not known. */
  readonly address: string;
  /** Shown on both screens, `WXYZ-1234`. */
  readonly userCode: string;
  /** Every poll must carry it. The caller generated it and returns it to the device only. */
  readonly secret: string;
}

/**
 * Begins a login. The vault records are written before the event that names them (docs/architecture.md, invariant 5).
 */
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
      userCode,
      secretHash,
      hostnameRef,
      addressRef,
      expiresAt,
    }),
  );
  return 'refused' in requested ? requested : { id, expiresAt };
}

/** A session that belongs to no account yet has a data key of its own in the vault, stored under the session's id. */
function vaultOwnerOf(id: DeviceSessionId): AccountId {
  return uuid<AccountId>(id);
}

/** What the user sees before granting or denying a session. */
export interface DeviceSessionDetails {
  readonly userCode: string;
  readonly hostname: string;
  readonly address: string | null;
  readonly expiresAt: Timestamp;
}

/** Reads a session that may be granted or denied now. The caller must have awaited `entities.barrier()`. */
export async function readPendingDeviceSession(
  context: Context & { readonly vault: Pick<Vault, 'get'> },
  id: DeviceSessionId,
): Promise<DeviceSessionDetails | Refused> {
  const { state } = await context.entities.get(deviceSessions, id);
  if (state.status === 'absent') return refuse({ code: 'device-session-not-found' });
  if (state.status !== 'pending') return refuse({ code: 'device-session-decided' });
  if (hasExpired(state, context.clock.now())) return refuse({ code: 'device-session-expired' });
  return readDetails(context.vault, id, state);
}

async function readDetails(
  vault: Pick<Vault, 'get'>,
  id: DeviceSessionId,
  { userCode, hostnameRef, addressRef, expiresAt }: PendingDeviceSession,
): Promise<DeviceSessionDetails | Refused> {
  const owner = vaultOwnerOf(id);
  const hostname = await vault.get(owner, 'hostname', hostnameRef);
  // The record is removed after the session has ended: another request decided it meanwhile.
  if (hostname === null) return refuse({ code: 'device-session-decided' });
  const address = addressRef === null ? null : await vault.get(owner, 'source-address', addressRef);
  return { userCode, hostname, address, expiresAt };
}

/** Grants the device a token with these settings. Refuses settings that a new token may not have. */
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
      account,
      settings,
      ownsRepository,
      now: context.clock.now(),
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

/**
 * Finds the session that a poll names. A wrong secret and an unknown session get the same refusal. The caller must have
 * awaited `entities.barrier()`.
 */
export async function findPolledSession(
  context: Context & { readonly digest: Digest },
  id: DeviceSessionId,
  secret: string,
): Promise<{ readonly id: DeviceSessionId; readonly state: Exclude<DeviceSession, { status: 'absent' }> } | Refused> {
  const { state } = await context.entities.get(deviceSessions, id);
  if (state.status === 'absent' || state.secretHash === null) return refuse({ code: 'device-session-not-found' });
  const isItsSecret = context.digest.equal(state.secretHash, context.digest.sha256(secret));
  return isItsSecret ? { id, state } : refuse({ code: 'device-session-not-found' });
}

export interface PolledToken extends CreatedToken {
  readonly username: string;
  /** Returned only here, once. It is stored nowhere. */
  readonly secret: string;
}

type PolledSession = Exclude<Awaited<ReturnType<typeof findPolledSession>>, Refused>;

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
  { id, state }: PolledSession,
): Promise<PolledToken | Refused | null> {
  const refused = claimRefusal(state, context.clock.now());
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

/**
 * Writes the token that a claim names, unless it exists. It cannot be refused, because the claim decided it. Returns
 * null if the owner has revoked the token meanwhile.
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
 * Finishes a session that has ended and closes it: writes a claimed token, and destroys what the device said about
 * itself. Idempotent: any node may call it, at any time. It does nothing to a session that has not ended.
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
