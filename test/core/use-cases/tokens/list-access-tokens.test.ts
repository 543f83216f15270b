/** Access tokens as their owner sees them. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { plusMs, type Timestamp } from '../../../../core/kernel/ids.ts';
import { ACCESS_TOKENS_MAX, TOKENS_REPOSITORIES_MAX } from '../../../../core/kernel/limits.ts';
import type { LastUse } from '../../../../core/ports/last-use.ts';
import { revokeAccessToken } from '../../../../core/use-cases/tokens/access-tokens.ts';
import {
  listAccessTokens,
  readAccessToken,
  refuseBeyondTokens,
} from '../../../../core/use-cases/tokens/list-access-tokens.ts';
import { accepted, codeOf, newAccount, newToken } from '../../../support/accounts.ts';
import { CAUSE } from '../../../support/node.ts';
import { startReading } from '../../../support/reading.ts';

async function started() {
  const { node: base, account } = await startReading();
  const used = new Map<Parameters<LastUse['touch']>[0], Timestamp>();
  const lastUse = { lastUsedAt: async () => used };
  const node = { ...base, lastUse };
  return { node, account, used, other: await newAccount(base, 'bob') };
}

describe('Access tokens', () => {
  test('are listed newest first with their last use, and without a secret or its hash', async () => {
    const { node, account, other, used } = await started();
    const first = await newToken(node, account, { name: 'first' });
    const second = await newToken(node, account, { name: 'second' });
    await newToken(node, other, { name: 'foreign' });
    used.set(first.id, node.clock.now());
    const { items: list } = await listAccessTokens(node, account, await node.entities.barrier());
    assert.deepEqual(
      list.map(({ token, lastUsedAt }) => [token.id, token.name, lastUsedAt]),
      [
        [second.id, 'second', null],
        [first.id, 'first', node.clock.now()],
      ],
    );
    const one = accepted(await readAccessToken(node, account, first.id));
    assert.deepEqual([one.token.name, one.lastUsedAt], ['first', node.clock.now()]);
  });

  test('are neither listed nor found if they are revoked or expired', async () => {
    const { node, account } = await started();
    const expiring = await newToken(node, account, { expiresAt: plusMs(node.clock.now(), 1_000) });
    const revoked = await newToken(node, account);
    accepted(await revokeAccessToken(node, { account, cause: CAUSE }, revoked.id));
    const ids = async () =>
      (await listAccessTokens(node, account, await node.entities.barrier())).items.map((t) => t.token.id);
    assert.deepEqual(await ids(), [expiring.id]);
    node.clock.advance(1_000);
    assert.deepEqual(await ids(), []);
    for (const { id } of [expiring, revoked]) {
      assert.equal(codeOf(await readAccessToken(node, account, id)), 'token-not-found');
    }
  });

  test('of another account get the same refusal as tokens that do not exist', async () => {
    const { node, account, other } = await started();
    const { id } = await newToken(node, other);
    assert.equal(codeOf(await readAccessToken(node, account, id)), 'token-not-found');
  });

  test('list 100,000 repositories in sum at most, since one answer lists them all', async () => {
    const { node, account } = await started();
    const sums = { tokens: 9, repositories: TOKENS_REPOSITORIES_MAX - 1 };
    const context = { readModels: { accessTokenSums: async () => sums }, clock: node.clock };
    const wanted = { account, changed: null };
    assert.equal(await refuseBeyondTokens(context, { ...wanted, repositories: 1 }), null);
    const refused = await refuseBeyondTokens(context, { ...wanted, repositories: 2 });
    assert.deepEqual(refused, { refused: { code: 'token-repositories-reached' } });
    // Tokens for all repositories stay possible.
    sums.repositories = TOKENS_REPOSITORIES_MAX + 1;
    assert.equal(await refuseBeyondTokens(context, { ...wanted, repositories: 0 }), null);
    // So does any change that lists none, however many tokens there are.
    sums.tokens = ACCESS_TOKENS_MAX;
    const { id } = await newToken(node, account);
    assert.equal(await refuseBeyondTokens(context, { account, changed: id, repositories: 0 }), null);
    const full = await refuseBeyondTokens(context, { ...wanted, repositories: 0 });
    assert.deepEqual(full, { refused: { code: 'token-limit-reached' } });
  });

  test('are listed after the model includes the log that the caller has seen', async () => {
    const { node, account } = await started();
    const seen = await node.entities.barrier();
    const order: string[] = [];
    const readModels: typeof node.readModels = {
      ...node.readModels,
      caughtUp: async (position) => void order.push(`seen ${position === seen}`),
      accessTokens: async () => {
        order.push('read');
        return [];
      },
    };
    await listAccessTokens({ ...node, readModels }, account, seen);
    assert.deepEqual(order, ['seen true', 'read']);
  });
});
