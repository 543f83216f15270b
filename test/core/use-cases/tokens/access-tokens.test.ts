/** The use cases of access tokens. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { newTokenSecret } from '../../../../adapters/node/token-secret.ts';
import { accessTokens } from '../../../../core/access-token/evolve.ts';
import { plusMs, uuid } from '../../../../core/kernel/ids.ts';
import { deleteRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import {
  createAccessToken,
  findAccessToken,
  revokeAccessToken,
  updateAccessToken,
} from '../../../../core/use-cases/tokens/access-tokens.ts';
import { codeOf, newAccount, newRepository, newToken, TOKEN_SETTINGS } from '../../../support/accounts.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { watchLog } from '../../../support/watched-log.ts';

async function started() {
  const log = watchLog();
  const node = await startNode(log);
  const account = await newAccount(node, 'ada');
  return { log, node, account, origin: { account, cause: CAUSE } };
}

const unknown = uuid('0190f3e2-7c1a-7b4e-9a35-00000000dead');

describe('An access token', () => {
  test('is in the log without its secret', async () => {
    const { log, node, account } = await started();
    const { id, secret } = await newToken(node, account);
    const events = await log.readStream((await node.entities.get(accessTokens, id)).stream, {
      direction: 'forwards',
      limit: 9,
    });
    const text = JSON.stringify(events, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
    assert.equal(text.includes(secret.slice('strata_'.length + 4)), false);
    assert.ok(text.includes(node.digest.sha256(secret)));
    assert.ok(text.includes(`"${secret.slice(0, 11)}"`));
  });

  test('may name repositories of its account, but not of other accounts or unknown ones', async () => {
    const { node, account, origin } = await started();
    const other = await newAccount(node, 'bob');
    const [own, foreign] = [await newRepository(node, account, 'own'), await newRepository(node, other, 'foreign')];
    const selected = { ...TOKEN_SETTINGS, scope: 'SELECTED_REPO' } as const;
    const create = (...repositoryIds: (typeof own.id)[]) =>
      createAccessToken(node, origin, { ...selected, repositoryIds }, newTokenSecret());
    assert.equal(codeOf(await create(own.id)), null);
    assert.equal(codeOf(await create(own.id, foreign.id)), 'token-unknown-repositories');
    assert.equal(codeOf(await create(uuid(unknown))), 'token-unknown-repositories');
  });

  test('keeps the id of a repository that was deleted since', async () => {
    const { node, account, origin } = await started();
    const { id: repository } = await newRepository(node, account, 'own');
    const { id } = await newToken(node, account, { scope: 'SELECTED_REPO', repositoryIds: [repository] });
    await deleteRepository(node, origin, repository);
    const renamed = await updateAccessToken(node, origin, id, { name: 'renamed', repositoryIds: [repository] });
    assert.equal(codeOf(renamed), null);
  });

  test('is not created for an account that does not exist', async () => {
    const { node } = await started();
    const origin = { account: uuid(unknown), cause: CAUSE } as Parameters<typeof createAccessToken>[1];
    assert.equal(codeOf(await createAccessToken(node, origin, TOKEN_SETTINGS, newTokenSecret())), 'account-not-found');
    assert.equal(codeOf(await updateAccessToken(node, origin, uuid(unknown), { name: 'x' })), 'account-not-found');
  });

  test('gets the same refusal for another account as a token that does not exist', async () => {
    const { node, origin } = await started();
    const bob = await newAccount(node, 'bob');
    const { id } = await newToken(node, bob);
    for (const target of [id, uuid<typeof id>(unknown)]) {
      assert.equal(codeOf(await findAccessToken(node, origin.account, target)), 'token-not-found');
      assert.equal(codeOf(await updateAccessToken(node, origin, target, { name: 'x' })), 'token-not-found');
      assert.equal(codeOf(await revokeAccessToken(node, origin, target)), 'token-not-found');
    }
    assert.equal(codeOf(await findAccessToken(node, bob, id)), null);
  });

  test('is found until it expires or is revoked', async () => {
    const { node, account, origin } = await started();
    const { id } = await newToken(node, account, { expiresAt: plusMs(node.clock.now(), 1_000) });
    assert.equal(codeOf(await findAccessToken(node, account, id)), null);
    node.clock.advance(1_000);
    assert.equal(codeOf(await findAccessToken(node, account, id)), 'token-not-found');
    const { id: second } = await newToken(node, account);
    assert.deepEqual(await revokeAccessToken(node, origin, second), { revoked: second });
    assert.equal(codeOf(await findAccessToken(node, account, second)), 'token-not-found');
    assert.equal(codeOf(await revokeAccessToken(node, origin, second)), 'token-not-found');
  });

  test('returns the state after the change even if it is revoked right after that', async () => {
    const { log, node, account, origin } = await started();
    const { id } = await newToken(node, account);
    log.on.appended = async () => {
      log.on.appended = undefined;
      await revokeAccessToken(node, origin, id);
    };
    const updated = await updateAccessToken(node, origin, id, { name: 'renamed' });
    assert.ok('token' in updated);
    assert.equal(updated.token.name, 'renamed');
  });
});
