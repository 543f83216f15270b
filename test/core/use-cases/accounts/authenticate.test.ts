/** From a token's secret to its bearer, and the guard that ties an append to it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newTokenSecret } from '../../../../adapters/node/token-secret.ts';
import { accessTokens } from '../../../../core/access-token/evolve.ts';
import { permits } from '../../../../core/kernel/grants.ts';
import { plusMs, type RepositoryId, uuid } from '../../../../core/kernel/ids.ts';
import { revokeAccessToken, updateAccessToken } from '../../../../core/use-cases/accounts/access-tokens.ts';
import { authenticate, type Bearer, guardedBy, sees } from '../../../../core/use-cases/authenticate.ts';
import { newAccount, newToken } from '../../../support/accounts.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { watchLog } from '../../../support/watched-log.ts';

const one: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-000000000001');

async function started() {
  const log = watchLog();
  const node = await startNode(log);
  const account = await newAccount(node, 'ada');
  const origin = { account, cause: CAUSE };
  const bearerOf = async (secret: string): Promise<Bearer> => {
    const bearer = await authenticate(node, secret);
    assert.ok(bearer !== null);
    return bearer;
  };
  return { log, node, account, origin, bearerOf };
}

describe('A secret', () => {
  test('is answered with its token as it stands, and the revision it stands at', async () => {
    const { node, account, origin, bearerOf } = await started();
    const { id, secret } = await newToken(node, account, { grants: ['GIT_HTTP_READ'] });
    const bearer = await bearerOf(secret);
    assert.deepEqual([bearer.tokenId, bearer.token.account, bearer.guard.revision], [id, account, 0]);
    await updateAccessToken(node, origin, id, { grants: ['GIT_HTTP_WRITE'] });
    const changed = await bearerOf(secret);
    assert.deepEqual([changed.token.grants, changed.guard.revision], [['GIT_HTTP_WRITE'], 1]);
  });

  test('that is malformed is refused without asking the log', async () => {
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
    ]) {
      assert.equal(await authenticate(node, text), null, JSON.stringify(text));
    }
    assert.equal(log.counts.reads, reads);
  });

  test('that nobody has is refused, and takes no memory however many are tried', async () => {
    const { node } = await started();
    const before = node.entities.residents();
    for (let n = 0; n < 20; n += 1) assert.equal(await authenticate(node, newTokenSecret()), null);
    assert.deepEqual(node.entities.residents(), before);
  });

  test('is refused from the instant it expires', async () => {
    const { node, account, bearerOf } = await started();
    const { secret } = await newToken(node, account, { expiresAt: plusMs(node.clock.now(), 1_000) });
    node.clock.advance(999);
    await bearerOf(secret);
    node.clock.advance(1);
    assert.equal(await authenticate(node, secret), null);
  });

  test('is refused once it was revoked, on every node', async () => {
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

  test('must have the hash that its token names, not only the id', async () => {
    const { node, account } = await started();
    const { secret } = await newToken(node, account);
    // Two secrets whose ids collide, as SHA-1 may one day allow.
    const first = node.digest.sha256(secret);
    const ids = { ...node.ids, derive: () => node.ids.derive(uuid('6f1c1f3e-4c5b-5d0e-9a35-2b8f5f0f7a11'), first) };
    const colliding = { ...node, ids: ids as typeof node.ids };
    assert.ok((await authenticate(colliding, secret)) !== null);
    assert.equal(await authenticate(colliding, newTokenSecret()), null);
  });
});

describe('A bearer', () => {
  test("sees its own account's repositories alone", async () => {
    const { node, account, bearerOf } = await started();
    const bearer = await bearerOf((await newToken(node, account)).secret);
    assert.equal(sees(bearer, { id: one, accountId: account }), true);
    assert.equal(sees(bearer, { id: one, accountId: uuid('0190f3e2-7c1a-7b4e-9a35-00000000000b') }), false);
    const token = { ...bearer.token, scope: 'SELECTED_REPO', repositoryIds: [] } as const;
    assert.equal(sees({ ...bearer, token }, { id: one, accountId: account }), false);
  });
});

describe("A token's guard", () => {
  async function guarded() {
    const parts = await started();
    const { id, secret } = await newToken(parts.node, parts.account, {
      grants: ['GIT_HTTP_WRITE'],
      expiresAt: plusMs(parts.node.clock.now(), 60_000),
    });
    const bearer = await parts.bearerOf(secret);
    const guarding = guardedBy(parts.node, bearer, ({ token }) => permits(token.grants, 'GIT_HTTP_WRITE'));
    return { ...parts, id, bearer, guarding };
  }
  const refused = { refused: { code: 'token-no-longer-valid' } };

  test('is the revision the bearer was seen at, at first without asking the log', async () => {
    const { log, guarding, bearer } = await guarded();
    const { reads } = log.counts;
    assert.deepEqual(await guarding(), { guards: [bearer.guard] });
    assert.equal(log.counts.reads, reads);
  });

  test('moves with a change that leaves the operation allowed', async () => {
    const { node, origin, id, bearer, guarding } = await guarded();
    await guarding();
    await updateAccessToken(node, origin, id, { name: 'renamed' });
    assert.deepEqual(await guarding(), { guards: [{ ...bearer.guard, revision: 1 }] });
  });

  test('refuses once the token is revoked or lost its grant', async () => {
    for (const end of ['revoked', 'no grant'] as const) {
      const { node, origin, id, guarding } = await guarded();
      await guarding();
      if (end === 'revoked') await revokeAccessToken(node, origin, id);
      else await updateAccessToken(node, origin, id, { grants: ['GIT_HTTP_READ'] });
      assert.deepEqual(await guarding(), refused, end);
    }
  });

  test('refuses a token that expired while a push was under way, at the first question already', async () => {
    const { node, guarding } = await guarded();
    node.clock.advance(60_000);
    assert.deepEqual(await guarding(), refused);
  });

  test('sees a revocation that this node was not told of yet', async () => {
    const { log, node, account, origin, id, guarding } = await guarded();
    const other = await startNode(log);
    await guarding();
    log.on.deliver = () => new Promise(() => undefined);
    await revokeAccessToken(other, { ...origin, account }, id);
    assert.equal((await node.entities.get(accessTokens, id)).state.status, 'active');
    assert.deepEqual(await guarding(), refused);
  });
});
