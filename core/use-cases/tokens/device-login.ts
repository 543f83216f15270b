/**
 * Device login up to its decision: a machine requests a login, and a signed-in user grants or denies it. The token
 * follows in device-login-token.ts.
 *
 * Invariants: a request writes one operational row and no event. The decision is the first event of the login's stream,
 * so of many decisions one counts. Before it, the row is held, so that it gives way to no other, and the event's
 * references are in the vault (docs/architecture.md, invariant 5). A process that dies in between leaves a login that
 * still waits. Streams that began with the request, as older versions wrote them, are decided as they were.
 */
import type { AccessTokenSettings } from '../../access-token/commands.ts';
import { newTokenSettings } from '../../access-token/decide.ts';
import { decideDeviceSession } from '../../device-session/decide.ts';
import type { DecidedRequest } from '../../device-session/events.ts';
import { deviceSessions } from '../../device-session/evolve.ts';
import { hasExpired, type PendingDeviceSession } from '../../device-session/state.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import { type AccountId, type DeviceSessionId, plusMs, type Timestamp, uuid } from '../../kernel/ids.ts';
import { DEVICE_HOSTNAME_LENGTH_MAX, DEVICE_SESSION_KEPT_MS, DEVICE_SESSION_SPAN_MS } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { codePointCount } from '../../kernel/text.ts';
import type { DeviceLoginRequests } from '../../ports/device-login-requests.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { ownership, type TokenCommandOrigin } from './access-tokens.ts';

/** Device logins that wait for their user, in all; beyond it the oldest of the network that has most gives way. */
export const DEVICE_SESSIONS_PENDING_MAX = 10_000;

type Refused = { readonly refused: Refusal };

export interface DeviceLoginAsked {
  /** The device's name for itself, 1 to 255 characters. */
  readonly hostname: string;
  /** The source address of the request; empty if it is not known. */
  readonly address: string;
  /** The address's network, whose requests count together when too many wait. */
  readonly network: string;
  /** Shown on both screens, `WXYZ-1234`. */
  readonly userCode: string;
  /** Every poll must carry it. The caller generated it and returns it to the device only. */
  readonly secret: string;
}

/** The name of a login's token if its user gives none. It does not hold the hostname, which is personal. */
export function defaultTokenName(now: Timestamp): string {
  return `Command line, ${now.slice(0, 10)}`;
}

/** Begins a login. It is kept until an hour after its end, unless it gives way before anybody decided about it. */
export async function requestDeviceLogin(
  context: Pick<Context, 'clock' | 'ids'> & {
    readonly digest: Digest;
    readonly deviceRequests: Pick<DeviceLoginRequests, 'add'>;
  },
  { secret, network, ...device }: DeviceLoginAsked,
): Promise<{ readonly id: DeviceSessionId; readonly expiresAt: Timestamp } | Refused> {
  const length = codePointCount(device.hostname);
  if (length < 1 || length > DEVICE_HOSTNAME_LENGTH_MAX) return refuse({ code: 'device-hostname-length' });
  const id = context.ids.next<DeviceSessionId>();
  const requestedAt = context.clock.now();
  const expiresAt = plusMs(requestedAt, DEVICE_SESSION_SPAN_MS);
  const secretHash = context.digest.sha256(secret);
  const { hostname, address, userCode } = device;
  const request = { id, secretHash, requestedAt, expiresAt, network, device: { hostname, address, userCode } };
  const keptSince = plusMs(requestedAt, -DEVICE_SESSION_KEPT_MS);
  // The commit point of this use case.
  await context.deviceRequests.add(request, { pendingMax: DEVICE_SESSIONS_PENDING_MAX, keptSince });
  return { id, expiresAt };
}

/** A login of an older version has a data key of its own in the vault, stored under the session's id. */
export function vaultOwnerOf(id: DeviceSessionId): AccountId {
  return uuid<AccountId>(id);
}

/** What the user sees before granting or denying a session. */
export interface DeviceSessionDetails {
  readonly userCode: string;
  readonly hostname: string;
  readonly address: string | null;
  readonly requestedAt: Timestamp;
  readonly expiresAt: Timestamp;
}

/** Reads a session that may be granted or denied now. The caller must have awaited `entities.barrier()`. */
export async function readPendingDeviceSession(
  context: Context & {
    readonly vault: Pick<Vault, 'get'>;
    readonly deviceRequests: Pick<DeviceLoginRequests, 'find'>;
  },
  id: DeviceSessionId,
): Promise<DeviceSessionDetails | Refused> {
  const { state } = await context.entities.get(deviceSessions, id);
  const now = context.clock.now();
  if (state.status === 'absent') {
    const request = await context.deviceRequests.find(id);
    if (request === null) return refuse({ code: 'device-session-not-found' });
    const { device, requestedAt, expiresAt } = request;
    if (device === null || hasExpired(request, now)) return refuse({ code: 'device-session-expired' });
    const { userCode, hostname, address } = device;
    return { userCode, hostname, address: address === '' ? null : address, requestedAt, expiresAt };
  }
  if (state.status === 'expired' || (state.status === 'closed' && state.after === 'expired')) {
    return refuse({ code: 'device-session-expired' });
  }
  if (state.status !== 'pending') return refuse({ code: 'device-session-decided' });
  if (hasExpired(state, now)) return refuse({ code: 'device-session-expired' });
  return readOlderDetails(context.vault, id, state);
}

async function readOlderDetails(
  vault: Pick<Vault, 'get'>,
  id: DeviceSessionId,
  { userCode, hostnameRef, addressRef, expiresAt }: PendingDeviceSession,
): Promise<DeviceSessionDetails | Refused> {
  const owner = vaultOwnerOf(id);
  const hostname = await vault.get(owner, 'hostname', hostnameRef);
  // The record is removed after the session has ended: another request decided it first.
  if (hostname === null) return refuse({ code: 'device-session-decided' });
  const address = addressRef === null ? null : await vault.get(owner, 'source-address', addressRef);
  return { userCode, hostname, address, requestedAt: plusMs(expiresAt, -DEVICE_SESSION_SPAN_MS), expiresAt };
}

/**
 * Finds the logins that wait for their user under a code: usually at most one, since codes are random. The caller must
 * have awaited `entities.barrier()`.
 */
export async function findPendingDeviceSessions(
  context: Context & { readonly deviceRequests: Pick<DeviceLoginRequests, 'underCode'> },
  userCode: string,
): Promise<readonly DeviceSessionId[]> {
  const ids = await context.deviceRequests.underCode(userCode, context.clock.now());
  const sessions = await Promise.all(
    ids.map(async (id) => ({ id, ...(await context.entities.get(deviceSessions, id)) })),
  );
  return sessions.flatMap(({ id, state }) => (state.status === 'absent' ? [id] : []));
}

export type DecisionContext = Context & {
  readonly vault: Pick<Vault, 'put'>;
  readonly deviceRequests: Pick<DeviceLoginRequests, 'find' | 'hold'>;
  readonly failpoint: Failpoint;
};

/** Grants the device a token with these settings. Refuses settings that a new token may not have. */
export async function grantDeviceLogin(
  context: DecisionContext,
  origin: TokenCommandOrigin,
  id: DeviceSessionId,
  settings: AccessTokenSettings,
): Promise<{ readonly settings: AccessTokenSettings } | Refused> {
  const { account } = origin;
  const ownsRepository = await ownership(context, account);
  if (ownsRepository === null) return refuse({ code: 'account-not-found' });
  // Checked first, because a refused form should write nothing; the decision below checks again.
  const checked = newTokenSettings(settings, ownsRepository, context.clock.now());
  if ('refused' in checked) return checked;
  const held = await holdRequest(context, account, id);
  if ('refused' in held) return held;
  const executed = await execute(context, deviceSessions, id, origin, (state) =>
    decideDeviceSession(state, {
      type: 'GrantDeviceLogin',
      account,
      request: held.request,
      settings,
      ownsRepository,
      now: context.clock.now(),
    }),
  );
  if ('refused' in executed) return executed;
  const { state } = executed.entity;
  if (state.status !== 'granted') throw new TypeError('A login that was just granted is not');
  await context.failpoint('device-login-decided');
  return { settings: state.settings };
}

export async function denyDeviceLogin(
  context: DecisionContext,
  origin: TokenCommandOrigin,
  id: DeviceSessionId,
): Promise<{ readonly denied: DeviceSessionId } | Refused> {
  const { account } = origin;
  if ((await ownership(context, account)) === null) return refuse({ code: 'account-not-found' });
  const held = await holdRequest(context, account, id);
  if ('refused' in held) return held;
  const executed = await execute(context, deviceSessions, id, origin, (state) =>
    decideDeviceSession(state, { type: 'DenyDeviceLogin', account, request: held.request, now: context.clock.now() }),
  );
  if ('refused' in executed) return executed;
  await context.failpoint('device-login-decided');
  return { denied: id };
}

/**
 * Holds the row of a login, and puts what its device said into the account's vault. Returns what the login's stream
 * begins with; null if the stream has begun, so that the log alone decides.
 */
async function holdRequest(
  context: DecisionContext,
  account: AccountId,
  id: DeviceSessionId,
): Promise<{ readonly request: DecidedRequest | null } | Refused> {
  const { state } = await context.entities.get(deviceSessions, id);
  if (state.status !== 'absent') return { request: null };
  const found = await context.deviceRequests.find(id);
  if (found === null) return refuse({ code: 'device-session-not-found' });
  const { device, requestedAt, expiresAt } = found;
  if (device === null || hasExpired(found, context.clock.now())) return refuse({ code: 'device-session-expired' });
  if (!(await context.deviceRequests.hold(id))) return refuse({ code: 'device-session-not-found' });
  await context.failpoint('device-login-held');
  const hostnameRef = await context.vault.put(account, 'hostname', device.hostname);
  const addressRef = device.address === '' ? null : await context.vault.put(account, 'source-address', device.address);
  await context.failpoint('device-login-described');
  return {
    request: {
      requested_at: requestedAt,
      session_expires_at: expiresAt,
      hostname_ref: hostnameRef,
      address_ref: addressRef,
    },
  };
}
