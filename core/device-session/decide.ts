/**
 * Decides the commands of a device login.
 *
 * Invariants: a session is granted or denied once and claimed once, before it expires. After that time only its end
 * may follow, whether or not `DeviceLoginExpired` is in the log.
 */
import { newTokenSettings } from '../access-token/decide.ts';
import { accept, type Decision, refuse } from '../kernel/decider.ts';
import { type Timestamp, timestamp } from '../kernel/ids.ts';
import type { Refusal } from '../kernel/refusal.ts';
import type { DeviceSessionCommand } from './commands.ts';
import type { DeviceSessionEvent } from './events.ts';
import { type DeviceSession, hasExpired } from './state.ts';

type Decided = Decision<DeviceSessionEvent>;

export function decideDeviceSession(state: DeviceSession, command: DeviceSessionCommand): Decided {
  switch (command.type) {
    case 'GrantDeviceLogin':
      return decideGrant(state, command);
    case 'DenyDeviceLogin': {
      const refused = decisionRefusal(state, command);
      if (refused !== null) return refuse(refused);
      return accept<DeviceSessionEvent>({
        type: 'DeviceLoginDenied',
        data: { account: command.account, request: requestOf(state, command) },
      });
    }
    case 'ClaimDeviceLogin': {
      const refused = claimRefusal(state, command.now);
      if (refused !== null) return refuse(refused);
      const { tokenId, tokenSecretHash, tokenPrefix } = command;
      return accept<DeviceSessionEvent>({
        type: 'DeviceLoginClaimed',
        data: { token_id: tokenId, secret_hash: tokenSecretHash, token_prefix: tokenPrefix },
      });
    }
    case 'ExpireDeviceLogin': {
      const waits = state.status === 'pending' || state.status === 'granted';
      if (!waits || !hasExpired(state, command.now)) return accept<DeviceSessionEvent>();
      return accept<DeviceSessionEvent>({ type: 'DeviceLoginExpired', data: {} });
    }
    case 'CloseDeviceLogin': {
      const ended = state.status === 'claimed' || state.status === 'denied' || state.status === 'expired';
      return ended ? accept<DeviceSessionEvent>({ type: 'DeviceLoginClosed', data: {} }) : accept<DeviceSessionEvent>();
    }
  }
}

function decideGrant(
  state: DeviceSession,
  command: Extract<DeviceSessionCommand, { type: 'GrantDeviceLogin' }>,
): Decided {
  const refused = decisionRefusal(state, command);
  if (refused !== null) return refuse(refused);
  const checked = newTokenSettings(command.settings, command.ownsRepository, command.now);
  if ('refused' in checked) return checked;
  const { name, scope, grants, repositoryIds, expiresAt } = checked.settings;
  return accept<DeviceSessionEvent>({
    type: 'DeviceLoginGranted',
    data: {
      account: command.account,
      name,
      scope,
      grants,
      repository_ids: repositoryIds,
      expires_at: expiresAt,
      request: requestOf(state, command),
    },
  });
}

type DecisionCommand = Extract<DeviceSessionCommand, { type: 'GrantDeviceLogin' | 'DenyDeviceLogin' }>;

/** A stream that began with the request has its facts already. */
function requestOf(state: DeviceSession, { request }: DecisionCommand): DecisionCommand['request'] {
  return state.status === 'absent' ? request : null;
}

/** Returns why nobody may grant or deny the session now; null if it is pending and has not expired. */
function decisionRefusal(state: DeviceSession, { request, now }: DecisionCommand): Refusal | null {
  switch (state.status) {
    case 'absent':
      if (request === null) return { code: 'device-session-not-found' };
      return timestamp(request.session_expires_at) <= now ? { code: 'device-session-expired' } : null;
    case 'pending':
      return hasExpired(state, now) ? { code: 'device-session-expired' } : null;
    case 'granted':
    case 'claimed':
    case 'denied':
      return { code: 'device-session-decided' };
    case 'expired':
      return { code: 'device-session-expired' };
    case 'closed':
      return { code: state.after === 'expired' ? 'device-session-expired' : 'device-session-decided' };
  }
}

/** Returns why nobody may claim the session's token now; null if it is granted and has not expired. */
export function claimRefusal(state: DeviceSession, now: Timestamp): Refusal | null {
  switch (state.status) {
    case 'absent':
      return { code: 'device-session-not-found' };
    case 'pending':
      return { code: hasExpired(state, now) ? 'device-session-expired' : 'device-login-pending' };
    case 'granted': {
      const { expiresAt } = state.settings;
      // No token is created that has already expired.
      const tokenIsOver = expiresAt !== null && expiresAt <= now;
      return hasExpired(state, now) || tokenIsOver ? { code: 'device-session-expired' } : null;
    }
    case 'claimed':
    case 'denied':
    case 'expired':
      return { code: ENDED[state.status] };
    case 'closed':
      return { code: ENDED[state.after] };
  }
}

const ENDED = {
  claimed: 'device-login-claimed',
  denied: 'device-login-denied',
  expired: 'device-session-expired',
} as const;
