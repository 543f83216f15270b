/** Folds a device login's events. */
import type { Decider } from '../kernel/decider.ts';
import { type AccessTokenId, type RepositoryId, type Timestamp, timestamp, uuid } from '../kernel/ids.ts';
import { vaultRef } from '../kernel/vault-ref.ts';
import {
  type DeviceLoginDenied,
  type DeviceLoginGranted,
  type DeviceSessionEvent,
  deviceSessionEventKinds,
} from './events.ts';
import type { DeviceSession, GrantedDeviceSession } from './state.ts';

function evolveDeviceSession(state: DeviceSession, event: DeviceSessionEvent, at: Timestamp): DeviceSession {
  switch (event.type) {
    case 'DeviceLoginRequested':
      return {
        status: 'pending',
        userCode: event.data.user_code,
        secretHash: event.data.secret_hash,
        hostnameRef: vaultRef(event.data.hostname_ref),
        addressRef: event.data.address_ref === null ? null : vaultRef(event.data.address_ref),
        expiresAt: timestamp(event.data.expires_at),
      };
    case 'DeviceLoginGranted':
      return {
        ...decidedOn(state, event),
        status: 'granted',
        account: uuid(event.data.account),
        settings: settingsOf(event),
      };
    case 'DeviceLoginDenied': {
      const { secretHash } = decidedOn(state, event);
      return { status: 'denied', secretHash, account: uuid(event.data.account) };
    }
    case 'DeviceLoginExpired':
      if (state.status !== 'pending' && state.status !== 'granted') throw misplaced(event, state);
      return {
        status: 'expired',
        secretHash: state.secretHash,
        account: state.status === 'granted' ? state.account : null,
      };
    case 'DeviceLoginClaimed': {
      const { secretHash, account, settings } = granted(state);
      const { token_id, secret_hash: tokenSecretHash, token_prefix: tokenPrefix } = event.data;
      const tokenId = uuid<AccessTokenId>(token_id);
      return { status: 'claimed', secretHash, account, settings, tokenId, tokenSecretHash, tokenPrefix, claimedAt: at };
    }
    case 'DeviceLoginClosed':
      if (state.status !== 'claimed' && state.status !== 'denied' && state.status !== 'expired') {
        throw misplaced(event, state);
      }
      return { status: 'closed', after: state.status, secretHash: state.secretHash, account: state.account };
  }
}

function settingsOf({ data }: DeviceLoginGranted): GrantedDeviceSession['settings'] {
  return {
    name: data.name,
    scope: data.scope,
    grants: data.grants,
    repositoryIds: data.repository_ids.map((id) => uuid<RepositoryId>(id)),
    expiresAt: data.expires_at === null ? null : timestamp(data.expires_at),
  };
}

/** Returns what the state after a decision keeps of the request, from the pending state or from the decision itself. */
function decidedOn(
  state: DeviceSession,
  event: DeviceLoginGranted | DeviceLoginDenied,
): Pick<GrantedDeviceSession, 'secretHash' | 'expiresAt'> {
  const { request } = event.data;
  if (request === null) {
    if (state.status !== 'pending') throw misplaced(event, state);
    return { secretHash: state.secretHash, expiresAt: state.expiresAt };
  }
  if (state.status !== 'absent') throw misplaced(event, state);
  return { secretHash: null, expiresAt: timestamp(request.session_expires_at) };
}

function granted(state: DeviceSession): GrantedDeviceSession {
  if (state.status !== 'granted') throw new TypeError(`A claim of a device login that is ${state.status}`);
  return state;
}

function misplaced(event: DeviceSessionEvent, state: DeviceSession): TypeError {
  return new TypeError(`${event.type} on a device login that is ${state.status}`);
}

export const deviceSessions: Decider<DeviceSession, DeviceSessionEvent> = {
  category: 'deviceSession',
  kinds: deviceSessionEventKinds,
  initial: { status: 'absent' },
  evolve: evolveDeviceSession,
  snapshots: null,
  sizeBytes: (state) => ('settings' in state ? 900 + 60 * state.settings.repositoryIds.length : 500),
};
