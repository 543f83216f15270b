/** Finding the principal of a token's secret or of a session, and the guard that makes an append depend on it. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { newTokenSecret } from '../../../../adapters/node/token-secret.ts';
import { accessTokens } from '../../../../core/access-token/evolve.ts';
import { plusMs, uuid } from '../../../../core/kernel/ids.ts';
import { changePassword } from '../../../../core/use-cases/accounts/accounts.ts';
import { guardedBy, identifyPerson } from '../../../../core/use-cases/callers/authenticate.ts';
import { stillPermitted } from '../../../../core/use-cases/callers/permission.ts';
import {
  type AccessTokenPrincipal,
  actorOf,
  grantsOf,
  selectionOf,
} from '../../../../core/use-cases/callers/principal.ts';
import { createRepository, deleteRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { revokeAccessToken, updateAccessToken } from '../../../../core/use-cases/tokens/access-tokens.ts';
import { authenticate, newAccount, newRepository, newToken } from '../../../support/accounts.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { watchLog } from '../../../support/watched-log.ts';

async function started() {
  const log = watchLog();
  const node = await startNode(log);
  const account = await newAccount(node, 'ada');
  const origin = { account, cause: CAUSE };
  const principalOf = async (secret: string): Promise<AccessTokenPrincipal> => {
    const principal = await authenticate(node, secret);
    assert.ok(principal?.kind === 'access-token');
    return principal;
  };
  return { log, node, account, origin, principalOf };
}

describe('A secret', () => {
  test('leads to the current state of its token, and the revision of its stream', async () => {
    const { node, account, origin, principalOf } = await started();
    const { id, secret } = await newToken(node, account, { grants: ['GIT_HTTP_READ'] });
    const principal = await principalOf(secret);
    assert.deepEqual([principal.tokenId, principal.account, principal.guards[0]?.revision], [id, account, 0]);
    await updateAccessToken(node, origin, id, { grants: ['GIT_HTTP_WRITE'] });
    const changed = await principalOf(secret);
    assert.deepEqual([changed.token.grants, changed.guards[0]?.revision], [['GIT_HTTP_WRITE'], 1]);
  });

  test('is refused without reading the log if it is malformed', async () => {
    const { log, node } = await started();
    const { reads } = log.counts;
    const secret = newTokenSecret();
    for (const text of [
      '',
      'strata_',
      secret.slice(0, -1),
      `${secret}a`,
      `${secret}\n`,
      secret.toUpperCase(),
      secret.replace('strata_', 'stratb_'),
      `${secret.slice(0, -1)}-`,
      `${secret.slice(0, -1)}é`,
      `${secret.slice(0, -1)}${secret.endsWith('0') ? '1' : '0'}`,
    ]) {
      assert.equal(await authenticate(node, text), null, JSON.stringify(text));
    }
    assert.equal(log.counts.reads, reads);
  });

  test('is refused if no token has it, and takes no memory, however many are tried', async () => {
    const { node } = await started();
    const before = node.entities.residents();
    for (let n = 0; n < 20; n += 1) assert.equal(await authenticate(node, newTokenSecret()), null);
    assert.deepEqual(node.entities.residents(), before);
  });

  test('is refused from the instant it expires', async () => {
    const { node, account, principalOf } = await started();
    const { secret } = await newToken(node, account, { expiresAt: plusMs(node.clock.now(), 1_000) });
    node.clock.advance(999);
    await principalOf(secret);
    node.clock.advance(1);
    assert.equal(await authenticate(node, secret), null);
  });

  test('is refused on every node after its token was revoked', async () => {
    const { log, node, account, origin } = await started();
    const other = await startNode(log);
    const { id, secret } = await newToken(node, account);
    await other.entities.barrier();
    assert.ok((await authenticate(other, secret)) !== null);
    await revokeAccessToken(node, origin, id);
    assert.equal(await authenticate(node, secret), null);
    await other.entities.barrier();
    assert.equal(await authenticate(other, secret), null);
  });

  test('must have the hash that its token holds, not only the same id', async () => {
    const { node, account } = await started();
    const { secret } = await newToken(node, account);
    // Two secrets whose ids collide, as may be possible with SHA-1.
    const first = node.digest.sha256(secret);
    const ids = { ...node.ids, derive: () => node.ids.derive(uuid('6f1c1f3e-4c5b-5d0e-9a35-2b8f5f0f7a11'), first) };
    const colliding = { ...node, ids: ids as typeof node.ids };
    assert.ok((await authenticate(colliding, secret)) !== null);
    assert.equal(await authenticate(colliding, newTokenSecret()), null);
  });
});

describe("A token's guard", () => {
  async function guarded() {
    const parts = await started();
    const { id, secret } = await newToken(parts.node, parts.account, {
      grants: ['GIT_HTTP_WRITE'],
      expiresAt: plusMs(parts.node.clock.now(), 60_000),
    });
    const principal = await parts.principalOf(secret);
    const requirement = { grant: 'GIT_HTTP_WRITE', scope: null, onItself: false } as const;
    const stillAllowed = stillPermitted(principal, { requirement, id: '', repository: null });
    return { ...parts, id, principal, guarding: guardedBy(parts.node, principal, stillAllowed) };
  }
  const refused = { refused: { code: 'token-no-longer-valid' } };

  test('is the revision that was read with the principal, and its first call does not read the log', async () => {
    const { log, guarding, principal } = await guarded();
    const { reads } = log.counts;
    assert.deepEqual(await guarding(), { guards: principal.guards });
    assert.equal(log.counts.reads, reads);
  });

  test('moves to the new revision after a change that keeps the operation allowed', async () => {
    const { node, origin, id, principal, guarding } = await guarded();
    await guarding();
    await updateAccessToken(node, origin, id, { name: 'renamed' });
    assert.deepEqual(await guarding(), { guards: [{ ...principal.guards[0], revision: 1 }] });
  });

  test('refuses after the token was revoked or lost its grant', async () => {
    for (const end of ['revoked', 'no grant'] as const) {
      const { node, origin, id, guarding } = await guarded();
      await guarding();
      if (end === 'revoked') await revokeAccessToken(node, origin, id);
      else await updateAccessToken(node, origin, id, { grants: ['GIT_HTTP_READ'] });
      assert.deepEqual(await guarding(), refused, end);
    }
  });

  test('refuses a token that expired during a push, already at the first call', async () => {
    const { node, guarding } = await guarded();
    node.clock.advance(60_000);
    assert.deepEqual(await guarding(), refused);
  });

  test('sees a revocation that this node has not yet received', async () => {
    const { log, node, account, origin, id, guarding } = await guarded();
    const other = await startNode(log);
    await guarding();
    log.on.deliver = () => new Promise(() => undefined);
    await revokeAccessToken(other, { ...origin, account }, id);
    assert.equal((await node.entities.get(accessTokens, id)).state.status, 'active');
    assert.deepEqual(await guarding(), refused);
  });
});

describe("A session's person", () => {
  async function signedIn() {
    const parts = await started();
    const { node, account } = parts;
    const session = { account, epoch: 0 };
    const person = await identifyPerson(node, session);
    assert.ok(person?.status === 'open');
    const { principal } = person;
    const guarding = guardedBy(node, principal, () => true);
    const create = (name: string) =>
      createRepository(
        node,
        { account, cause: CAUSE, guarding },
        { name, description: null, defaultBranch: null, storageBucketId: null },
      );
    return { ...parts, session, principal, guarding, create };
  }
  const refused = { refused: { code: 'session-no-longer-valid' } };

  test('may do everything in the own account, in its own name', async () => {
    const { account, principal } = await signedIn();
    assert.deepEqual([principal.account, principal.username, principal.epoch], [account, 'ada', 0]);
    assert.deepEqual(grantsOf(principal), ['ALL']);
    assert.equal(selectionOf(principal).scope, 'ALL_REPO');
    assert.deepEqual(actorOf(principal), { kind: 'user', id: account });
  });

  test('is nobody with the epoch of another time, or of an account that does not exist', async () => {
    const { node, session } = await signedIn();
    assert.equal(await identifyPerson(node, { ...session, epoch: 1 }), null);
    assert.equal(await identifyPerson(node, { ...session, account: node.ids.next() }), null);
  });

  test('is nobody from the request on that follows a change of the password, on every node', async () => {
    const { log, node, account, session } = await signedIn();
    const other = await startNode(log);
    assert.ok((await identifyPerson(other, session)) !== null);
    assert.ok(!('refused' in (await changePassword(node, { account, cause: CAUSE }, 'another password'))));
    await other.entities.barrier();
    assert.equal(await identifyPerson(other, session), null);
    assert.ok((await identifyPerson(other, { account, epoch: 1 })) !== null);
  });

  test('commits nothing in a request that was under way when the password was changed', async () => {
    const { log, node, account, create, guarding } = await signedIn();
    const other = await startNode(log, { vault: node.vault });
    log.on.deliver = () => new Promise(() => undefined);
    assert.ok(!('refused' in (await changePassword(other, { account, cause: CAUSE }, 'another password'))));
    assert.deepEqual(await create('tools'), refused);
    assert.deepEqual(await guarding(), refused);
  });

  test('commits nothing on another stream either, on a node that does not know of the change yet', async () => {
    const { log, node, account } = await signedIn();
    const { id } = await newRepository(node, account, 'tools');
    const person = await identifyPerson(node, { account, epoch: 0 });
    assert.ok(person?.status === 'open');
    const guarding = guardedBy(node, person.principal, () => true);
    const other = await startNode(log, { vault: node.vault });
    log.on.deliver = () => new Promise(() => undefined);
    assert.ok(!('refused' in (await changePassword(other, { account, cause: CAUSE }, 'another password'))));
    assert.deepEqual(await deleteRepository(node, { account, cause: CAUSE, guarding }, id), refused);
  });

  test('makes several changes in one request, although each moves the account', async () => {
    const { create } = await signedIn();
    for (const name of ['one', 'two', 'three']) assert.ok(!('refused' in (await create(name))), name);
  });
});
