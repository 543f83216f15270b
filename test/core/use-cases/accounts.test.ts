/** Creating an account, cut in half at each of its steps: names come free again, or the account is whole. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryVault } from '../../../adapters/memory/vault.ts';
import { CLAIM_SPAN_MS } from '../../../core/kernel/limits.ts';
import type { FaultPoint, Reach } from '../../../core/ports/fault-points.ts';
import { createAccount, findAccount } from '../../../core/use-cases/accounts.ts';
import { createApiFixture } from '../../support/api-fixture.ts';

const CAUSE = {
  actor: { kind: 'admin', id: 'test' },
  requestId: 'test',
  sourceAddressRef: null,
  causationId: null,
} as const;

async function diedAt(point: FaultPoint) {
  const fixture = await createApiFixture();
  const parts = {
    ...fixture.context,
    vault: createMemoryVault(),
    passwords: { hash: async () => 'hash', verify: async () => false },
  };
  const create = (username: string, reach: Reach = async () => undefined) =>
    createAccount({ ...parts, reach }, CAUSE, {
      username,
      email: 'ada@example.org',
      password: 'a long password',
      plan: 'FREE',
    });
  const dying = create('ada', async (reached) => {
    if (reached === point) throw new Error('the process died');
  });
  await assert.rejects(dying, /the process died/);
  return { fixture, create };
}

test('cut after the username was claimed, the name comes free when the claim has run out', async () => {
  const { fixture, create } = await diedAt('account-username-claimed');
  assert.equal(await findAccount(fixture.context, 'ada'), null);
  assert.deepEqual(await create('ada'), { refused: { code: 'username-taken', username: 'ada' } });
  fixture.clock.advance(CLAIM_SPAN_MS);
  assert.ok('refused' in (await create('ada')));
  fixture.clock.advance(1);
  const created = await create('ada');
  assert.ok('id' in created, JSON.stringify(created));
  assert.equal(await findAccount(fixture.context, 'ada'), created.id);
  await fixture.close();
});

test('cut after the account was created, it is whole and keeps its names for ever', async () => {
  const { fixture, create } = await diedAt('account-created');
  const account = await findAccount(fixture.context, 'ada');
  assert.notEqual(account, null);
  for (const spanMs of [0, CLAIM_SPAN_MS, CLAIM_SPAN_MS]) {
    fixture.clock.advance(spanMs);
    assert.deepEqual(await create('ada'), { refused: { code: 'username-taken', username: 'ada' } });
    assert.deepEqual(await create('another'), { refused: { code: 'email-taken' } });
    assert.equal(await findAccount(fixture.context, 'ada'), account);
  }
  await fixture.close();
});
