/** The rules of a device login: which commands it takes in which state, and until when. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { DeviceSessionCommand } from '../../../core/device-session/commands.ts';
import { decideDeviceSession } from '../../../core/device-session/decide.ts';
import type { DeviceLoginDenied, DeviceLoginGranted, DeviceSessionEvent } from '../../../core/device-session/events.ts';
import { deviceSessions } from '../../../core/device-session/evolve.ts';
import { type AccountId, plusMs, timestamp, uuid } from '../../../core/kernel/ids.ts';
import { given } from '../../support/fold.ts';

const account: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000a');
const tokenId = uuid('0190f3e2-7c1a-7b4e-9a35-0000000000aa');
const expiresAt = timestamp('2026-11-21T10:10:00.000Z');
const inTime = plusMs(expiresAt, -1);
const settings = { name: 'laptop', scope: 'ALL_REPO', grants: ['ALL'], repositoryIds: [], expiresAt: null } as const;

const requested: DeviceSessionEvent = {
  type: 'DeviceLoginRequested',
  data: {
    user_code: 'WXYZ-1234',
    secret_hash: 'a'.repeat(64),
    hostname_ref: '7'.repeat(64),
    address_ref: null,
    expires_at: expiresAt,
  },
};
const granted: DeviceLoginGranted = {
  type: 'DeviceLoginGranted',
  data: {
    ...{ account, name: 'laptop', scope: 'ALL_REPO', grants: ['ALL'], repository_ids: [], expires_at: null },
    request: null,
  },
};
const denied: DeviceLoginDenied = { type: 'DeviceLoginDenied', data: { account, request: null } };
const expired: DeviceSessionEvent = { type: 'DeviceLoginExpired', data: {} };
const claimed: DeviceSessionEvent = {
  type: 'DeviceLoginClaimed',
  data: { token_id: tokenId, secret_hash: 'f'.repeat(64), token_prefix: 'strata_abcd' },
};
const closed: DeviceSessionEvent = { type: 'DeviceLoginClosed', data: {} };

const HISTORIES: Readonly<Record<string, readonly DeviceSessionEvent[]>> = {
  absent: [],
  pending: [requested],
  granted: [requested, granted],
  denied: [requested, denied],
  expired: [requested, expired],
  claimed: [requested, granted, claimed],
  'closed after a claim': [requested, granted, claimed, closed],
  'closed after a denial': [requested, denied, closed],
  'closed after its time': [requested, granted, expired, closed],
};

function decide(history: readonly DeviceSessionEvent[], command: DeviceSessionCommand) {
  const decision = decideDeviceSession(given(deviceSessions, ...history), command);
  return 'refused' in decision ? decision.refused.code : decision.events.map(({ type }) => type).join();
}

/** Returns the result of a command in each state. */
function outcomes(command: DeviceSessionCommand): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(HISTORIES).map(([name, history]) => [name, decide(history, command)]));
}

const ownsRepository = (): boolean => false;
const tokenOf = { tokenId: uuid<never>(tokenId), tokenSecretHash: 'f'.repeat(64), tokenPrefix: 'strata_abcd' };

describe('A device login whose stream begins with the request', () => {
  test('is granted or denied only while it is pending', () => {
    const ends = {
      absent: 'device-session-not-found',
      granted: 'device-session-decided',
      denied: 'device-session-decided',
      expired: 'device-session-expired',
      claimed: 'device-session-decided',
      'closed after a claim': 'device-session-decided',
      'closed after a denial': 'device-session-decided',
      'closed after its time': 'device-session-expired',
    };
    const grant = { type: 'GrantDeviceLogin', account, request: null, settings, ownsRepository, now: inTime } as const;
    assert.deepEqual(outcomes(grant), { ...ends, pending: 'DeviceLoginGranted' });
    const deny = { type: 'DenyDeviceLogin', account, request: null, now: inTime } as const;
    assert.deepEqual(outcomes(deny), { ...ends, pending: 'DeviceLoginDenied' });
    for (const late of [grant, deny]) {
      assert.equal(decide([requested], { ...late, now: expiresAt }), 'device-session-expired');
    }
  });

  test('is claimed only while it is granted', () => {
    const claim = { type: 'ClaimDeviceLogin', ...tokenOf, now: inTime } as const;
    assert.deepEqual(outcomes(claim), {
      absent: 'device-session-not-found',
      pending: 'device-login-pending',
      granted: 'DeviceLoginClaimed',
      denied: 'device-login-denied',
      expired: 'device-session-expired',
      claimed: 'device-login-claimed',
      'closed after a claim': 'device-login-claimed',
      'closed after a denial': 'device-login-denied',
      'closed after its time': 'device-session-expired',
    });
    assert.equal(decide([requested, granted], { ...claim, now: expiresAt }), 'device-session-expired');
    assert.equal(decide([requested], { ...claim, now: expiresAt }), 'device-session-expired');
  });

  test('expires at its time if nothing has ended it before', () => {
    const expire = { type: 'ExpireDeviceLogin', now: expiresAt } as const;
    for (const [name, outcome] of Object.entries(outcomes(expire))) {
      assert.equal(outcome, name === 'pending' || name === 'granted' ? 'DeviceLoginExpired' : '', name);
    }
    assert.equal(decide([requested], { ...expire, now: inTime }), '');
  });

  test('is closed once, after it has ended', () => {
    for (const [name, outcome] of Object.entries(outcomes({ type: 'CloseDeviceLogin' }))) {
      assert.equal(outcome, ['denied', 'expired', 'claimed'].includes(name) ? 'DeviceLoginClosed' : '', name);
    }
  });

  test('is granted only with settings that a new token may have', () => {
    const grant = (more: object) =>
      decide([requested], {
        type: 'GrantDeviceLogin',
        ...{ account, request: null, ownsRepository, now: inTime, settings: { ...settings, ...more } },
      });
    assert.equal(grant({ grants: [] }), 'token-grants-empty');
    assert.equal(grant({ scope: 'SELECTED_REPO', repositoryIds: [tokenId] }), 'token-unknown-repositories');
    assert.equal(grant({ expiresAt: inTime }), 'token-expiry-not-in-future');
    assert.equal(grant({ name: '' }), 'token-name-length');
  });
});

describe('A device login whose stream begins with the decision', () => {
  const request = {
    requested_at: '2026-11-21T10:00:00.000Z',
    session_expires_at: expiresAt,
    hostname_ref: '7'.repeat(64),
    address_ref: null,
  };
  const grantedFirst: DeviceSessionEvent = { ...granted, data: { ...granted.data, request } };
  const deniedFirst: DeviceSessionEvent = { ...denied, data: { ...denied.data, request } };
  const claim = { type: 'ClaimDeviceLogin', ...tokenOf, now: inTime } as const;

  const grant = { type: 'GrantDeviceLogin', account, request, settings, ownsRepository, now: inTime } as const;
  const deny = { type: 'DenyDeviceLogin', account, request, now: inTime } as const;

  test('begins with the facts of its request, before it expires', () => {
    const decided = [grant, deny].map((command) => decideDeviceSession({ status: 'absent' }, command));
    assert.deepEqual(decided, [{ events: [grantedFirst] }, { events: [deniedFirst] }]);
    for (const late of [grant, deny]) assert.equal(decide([], { ...late, now: expiresAt }), 'device-session-expired');
    assert.equal(decide([], { ...grant, settings: { ...settings, grants: [] } }), 'token-grants-empty');
  });

  test('can be claimed before it expires', () => {
    assert.equal(decide([grantedFirst], claim), 'DeviceLoginClaimed');
    assert.equal(decide([grantedFirst], { ...claim, now: expiresAt }), 'device-session-expired');
    assert.equal(decide([deniedFirst], claim), 'device-login-denied');
    const state = given(deviceSessions, grantedFirst, claimed);
    assert.ok(state.status === 'claimed');
    assert.deepEqual([state.account, state.settings, state.secretHash], [account, settings, null]);
  });

  test('is decided only once', () => {
    for (const command of [grant, deny, { ...grant, request: null }, { ...deny, request: null }]) {
      assert.equal(decide([grantedFirst], command), 'device-session-decided');
      assert.equal(decide([deniedFirst], command), 'device-session-decided');
    }
    assert.throws(() => given(deviceSessions, requested, grantedFirst), TypeError, 'its request is there twice');
    assert.throws(() => given(deviceSessions, granted), TypeError, 'it has no request');
    assert.throws(() => given(deviceSessions, grantedFirst, deniedFirst), TypeError);
  });
});
