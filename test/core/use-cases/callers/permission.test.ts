/** The permissions that callers need, and the repositories that they may know of. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ActiveAccessToken } from '../../../../core/access-token/state.ts';
import { streamName } from '../../../../core/kernel/envelope.ts';
import { type AccessTokenId, type AccountId, type RepositoryId, timestamp, uuid } from '../../../../core/kernel/ids.ts';
import { lackOf, type Requirement, sees, stillPermitted } from '../../../../core/use-cases/callers/permission.ts';
import { actorOf, type Principal } from '../../../../core/use-cases/callers/principal.ts';

const account: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000a');
const stranger: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000b');
const tokenId: AccessTokenId = uuid('0190f3e2-7c1a-5b4e-9a35-00000000000c');
const one: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-000000000001');
const two: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-000000000002');

function token(settings: Partial<ActiveAccessToken> = {}): Principal {
  const whole: ActiveAccessToken = {
    status: 'active',
    account,
    name: 'test',
    scope: 'ALL_REPO',
    grants: ['API_REPOS_WRITE'],
    repositoryIds: [],
    expiresAt: null,
    secretHash: '',
    tokenPrefix: 'strata_0000',
    createdAt: timestamp('2026-11-21T10:00:00.000Z'),
    ...settings,
  };
  const guards = [{ stream: streamName('accessToken', tokenId), revision: 0 }];
  return { kind: 'access-token', account, tokenId, token: whole, guards };
}

const selected = token({ scope: 'SELECTED_REPO', repositoryIds: [one] });

function requiring(requirement: Partial<Requirement>): Requirement {
  return { grant: null, scope: null, onItself: false, ...requirement };
}

describe('An access token', () => {
  test('sees the repositories of its own account that its scope includes', () => {
    assert.equal(sees(token(), { id: one, accountId: account }), true);
    assert.equal(sees(token(), { id: one, accountId: stranger }), false);
    assert.equal(sees(selected, { id: one, accountId: account }), true);
    assert.equal(sees(selected, { id: two, accountId: account }), false);
    assert.equal(sees(selected, { id: one, accountId: stranger }), false);
  });

  test('lacks a grant that none of its grants implies, which is reported before its scope', () => {
    assert.equal(lackOf(requiring({ grant: 'API_REPOS_READ' }), token(), ''), null);
    assert.deepEqual(lackOf(requiring({ grant: 'ALL', scope: 'ALL_REPO' }), selected, ''), {
      lacks: 'grant',
      grant: 'ALL',
    });
  });

  test('lacks the scope of all repositories if it is confined to some', () => {
    assert.equal(lackOf(requiring({ scope: 'ALL_REPO' }), token(), ''), null);
    assert.deepEqual(lackOf(requiring({ scope: 'ALL_REPO' }), selected, ''), { lacks: 'scope', scope: 'ALL_REPO' });
  });

  test('needs no grant for what it may do to itself', () => {
    const requirement = requiring({ grant: 'ALL', onItself: true });
    assert.equal(lackOf(requirement, token(), tokenId.toUpperCase()), null);
    assert.notEqual(lackOf(requirement, token(), one), null);
    assert.notEqual(lackOf(requirement, token(), ''), null);
    assert.notEqual(lackOf({ ...requirement, onItself: false }, token(), tokenId), null);
  });

  test('is no longer permitted after it lost the grant, or the repository left its scope', () => {
    const requirement = requiring({ grant: 'API_REPOS_WRITE' });
    const still = stillPermitted(token(), { requirement, id: '', repository: { id: one, accountId: account } });
    assert.deepEqual([still(token()), still(selected)], [true, true]);
    assert.equal(still(token({ grants: ['GIT_HTTP_WRITE'] })), false);
    assert.equal(still(token({ scope: 'SELECTED_REPO', repositoryIds: [two] })), false);
  });

  test('is no longer permitted an operation on the account once its selection lost a repository', () => {
    const requirement = requiring({ grant: 'API_REPOS_WRITE' });
    const both = token({ scope: 'SELECTED_REPO', repositoryIds: [one, two] });
    const still = stillPermitted(both, { requirement, id: '', repository: null });
    assert.deepEqual([still(both), still(token())], [true, true]);
    assert.equal(still(selected), false);
    assert.equal(stillPermitted(token(), { requirement, id: '', repository: null })(both), false);
  });

  test('is named by its id in events and in usage', () => {
    assert.deepEqual(actorOf(token()), { kind: 'token', id: tokenId });
  });
});
