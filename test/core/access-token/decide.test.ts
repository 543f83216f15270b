/** The rules for an access token's settings, at its creation and at every change. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AccessTokenCommand, AccessTokenSettings } from '../../../core/access-token/commands.ts';
import { decideAccessToken } from '../../../core/access-token/decide.ts';
import type { AccessTokenEvent } from '../../../core/access-token/events.ts';
import { accessTokens } from '../../../core/access-token/evolve.ts';
import { isExpired } from '../../../core/access-token/state.ts';
import { type AccountId, plusMs, type RepositoryId, timestamp, uuid } from '../../../core/kernel/ids.ts';
import { given } from '../../support/fold.ts';

const account: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000a');
const one: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-000000000001');
const two: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-000000000002');
const gone: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000dead');
const now = timestamp('2026-11-21T12:00:00.000Z');
const settings: AccessTokenSettings = {
  name: 'ci',
  scope: 'ALL_REPO',
  grants: ['ALL'],
  repositoryIds: [],
  expiresAt: null,
};
const ownsRepository = (id: RepositoryId): boolean => id === one || id === two;
const secretHash = 'f'.repeat(64);

function created(more: Partial<AccessTokenSettings> = {}): AccessTokenEvent {
  const { repositoryIds, expiresAt, ...rest } = { ...settings, ...more };
  const data = { account, ...rest, repository_ids: repositoryIds, expires_at: expiresAt };
  return { type: 'AccessTokenCreated', data: { ...data, secret_hash: secretHash, token_prefix: 'strata_abcd' } };
}

const revoked: AccessTokenEvent = { type: 'AccessTokenRevoked', data: { reason: 'deleted' } };

function decide(history: readonly AccessTokenEvent[], command: AccessTokenCommand) {
  const decision = decideAccessToken(given(accessTokens, ...history), command);
  return 'refused' in decision ? decision.refused.code : decision.events;
}

function create(more: Partial<AccessTokenSettings>) {
  return decide([], {
    type: 'CreateAccessToken',
    account,
    settings: { ...settings, ...more },
    ownsRepository,
    secretHash,
    tokenPrefix: 'strata_abcd',
    now,
  });
}

function update(history: readonly AccessTokenEvent[], changes: Partial<AccessTokenSettings>) {
  return decide(history, { type: 'UpdateAccessToken', changes, ownsRepository, now });
}

const selected = { scope: 'SELECTED_REPO', repositoryIds: [one] } satisfies Partial<AccessTokenSettings>;

describe('A new access token', () => {
  test('has the requested settings, with each grant and repository once', () => {
    assert.deepEqual(create({}), [created()]);
    const twice = {
      grants: ['GIT_HTTP_READ', 'GIT_HTTP_READ'],
      scope: 'SELECTED_REPO',
      repositoryIds: [two, one, two],
    };
    assert.deepEqual(create(twice as Partial<AccessTokenSettings>), [
      created({ grants: ['GIT_HTTP_READ'], scope: 'SELECTED_REPO', repositoryIds: [two, one] }),
    ]);
  });

  test('has a name of 1 to 100 characters', () => {
    for (const name of ['a', 'x'.repeat(100), '😀'.repeat(100)]) assert.equal(typeof create({ name }), 'object');
    for (const name of ['', 'x'.repeat(101), '😀'.repeat(101)]) assert.equal(create({ name }), 'token-name-length');
  });

  test('needs at least one grant', () => {
    assert.equal(create({ grants: [] }), 'token-grants-empty');
  });

  test('names repositories if its scope is SELECTED_REPO, and none if it is ALL_REPO', () => {
    assert.equal(create({ scope: 'SELECTED_REPO' }), 'token-scope-needs-repositories');
    assert.equal(create({ repositoryIds: [one] }), 'token-scope-takes-no-repositories');
    assert.equal(typeof create(selected), 'object');
  });

  test('may name only repositories of its own account', () => {
    const command = { ...selected, repositoryIds: [one, gone] };
    assert.equal(create(command), 'token-unknown-repositories');
  });

  test('expires in the future or never', () => {
    assert.equal(create({ expiresAt: now }), 'token-expiry-not-in-future');
    assert.equal(create({ expiresAt: plusMs(now, -1) }), 'token-expiry-not-in-future');
    assert.equal(typeof create({ expiresAt: plusMs(now, 1) }), 'object');
  });

  test('cannot be created twice from one secret', () => {
    const again: AccessTokenCommand = {
      type: 'CreateAccessToken',
      account,
      settings,
      ownsRepository,
      secretHash,
      tokenPrefix: 'strata_abcd',
      now,
    };
    assert.throws(() => decide([created()], again), TypeError);
  });
});

describe('A change of an access token', () => {
  test('records only the members that changed', () => {
    assert.deepEqual(update([created()], { name: 'deploy', grants: ['ALL'] }), [
      { type: 'AccessTokenUpdated', data: { name: 'deploy' } },
    ]);
    assert.deepEqual(update([created({ expiresAt: plusMs(now, 1) })], { expiresAt: null }), [
      { type: 'AccessTokenUpdated', data: { expires_at: null } },
    ]);
    assert.deepEqual(update([created(selected)], { scope: 'ALL_REPO', repositoryIds: [] }), [
      { type: 'AccessTokenUpdated', data: { scope: 'ALL_REPO', repository_ids: [] } },
    ]);
  });

  test('makes no event if it changes nothing, even if it names a value twice', () => {
    assert.deepEqual(update([created(selected)], {}), []);
    assert.deepEqual(update([created(selected)], { ...settings, ...selected }), []);
    assert.deepEqual(update([created(selected)], { repositoryIds: [one, one], grants: ['ALL', 'ALL'] }), []);
  });

  test('is checked together with the settings that it does not change', () => {
    assert.equal(update([created(selected)], { scope: 'ALL_REPO' }), 'token-scope-takes-no-repositories');
    assert.equal(update([created()], { scope: 'SELECTED_REPO' }), 'token-scope-needs-repositories');
    assert.equal(update([created(selected)], { repositoryIds: [] }), 'token-scope-needs-repositories');
    assert.equal(update([created()], { name: '' }), 'token-name-length');
    assert.equal(update([created()], { grants: [] }), 'token-grants-empty');
  });

  test('may keep the id of a repository that was deleted since, but may not add one', () => {
    const history = [created({ ...selected, repositoryIds: [gone] })];
    assert.equal(typeof update(history, { repositoryIds: [gone, one] }), 'object');
    assert.equal(update([created(selected)], { repositoryIds: [one, gone] }), 'token-unknown-repositories');
  });

  test('sets an expiry in the future', () => {
    assert.equal(update([created()], { expiresAt: now }), 'token-expiry-not-in-future');
    assert.equal(typeof update([created()], { expiresAt: plusMs(now, 1) }), 'object');
  });

  test('is refused for a token that does not exist, is revoked or has expired', () => {
    for (const history of [[], [created(), revoked], [created({ expiresAt: now })]]) {
      assert.equal(update(history, { name: 'deploy' }), 'token-not-found');
    }
  });

  test("leaves the token's other settings as they were", () => {
    const changed: AccessTokenEvent = { type: 'AccessTokenUpdated', data: { name: 'deploy', expires_at: now } };
    const [before, after] = [given(accessTokens, created(selected)), given(accessTokens, created(selected), changed)];
    assert.deepEqual(after, { ...before, name: 'deploy', expiresAt: now });
    const unset: AccessTokenEvent = { type: 'AccessTokenUpdated', data: { name: 'ci', expires_at: null } };
    assert.deepEqual(given(accessTokens, created(selected), changed, unset), before);
  });
});

describe('A token', () => {
  test('can be revoked only once', () => {
    assert.deepEqual(decide([created()], { type: 'RevokeAccessToken' }), [revoked]);
    assert.equal(decide([created(), revoked], { type: 'RevokeAccessToken' }), 'token-not-found');
    assert.equal(decide([], { type: 'RevokeAccessToken' }), 'token-not-found');
    assert.deepEqual(given(accessTokens, created(), revoked), { status: 'revoked', account });
  });

  test('is expired from the instant of its expiry on', () => {
    const state = given(accessTokens, created({ expiresAt: now }));
    assert.ok(state.status === 'active');
    assert.equal(isExpired(state, plusMs(now, -1)), false);
    assert.equal(isExpired(state, now), true);
  });

  test('throws for an event before its creation', () => {
    assert.throws(() => given(accessTokens, revoked), TypeError);
    assert.throws(() => given(accessTokens, { type: 'AccessTokenUpdated', data: {} }), TypeError);
  });
});
