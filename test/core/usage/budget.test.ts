/** Whether a month's transfer quota is used up, and how often the projection is read for it. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import { type AccountId, uuid } from '../../../core/kernel/ids.ts';
import { createTransferBudget, type ProjectedSum } from '../../../core/usage/budget.ts';
import { createTestClock } from '../../support/test-clock.ts';

const ada: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000a');
const bob: AccountId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000b');
const QUOTA_BYTES = 1_000;

function budgetWith(projectedBytes: number) {
  const clock = createTestClock();
  const state = { projectedBytes, unflushedBytes: 0, flushes: 0, reads: 0 };
  const sums = new Map<AccountId, ProjectedSum>();
  const context = {
    plans: { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, transfer_bytes: QUOTA_BYTES } },
    usage: {
      usageOf: async () => {
        state.reads += 1;
        return { storageBytes: 0, transferBytes: state.projectedBytes, ingressBytes: 0 };
      },
    },
    transfer: { unflushedBytes: () => state.unflushedBytes, flushes: () => state.flushes },
    clock,
  };
  const budget = createTransferBudget(context, {
    get: (account) => sums.get(account),
    set: (account, sum) => void sums.set(account, sum),
  });
  return { clock, state, sums, budget };
}

describe('The transfer budget', () => {
  test('has room up to the quota, and none at it', async () => {
    assert.equal(await budgetWith(QUOTA_BYTES - 1).budget.hasRoom(ada, 'FREE'), true);
    assert.equal(await budgetWith(QUOTA_BYTES).budget.hasRoom(ada, 'FREE'), false);
  });

  test('counts bytes that this node sent immediately', async () => {
    const { budget, state } = budgetWith(0);
    assert.equal(await budget.hasRoom(ada, 'FREE'), true);
    state.unflushedBytes = QUOTA_BYTES;
    assert.equal(await budget.hasRoom(ada, 'FREE'), false);
  });

  test('reads the projection once a second for each account, and again after a flush', async () => {
    const { budget, clock, state } = budgetWith(0);
    await budget.hasRoom(ada, 'FREE');
    clock.advance(1_000);
    await budget.hasRoom(ada, 'FREE');
    assert.equal(state.reads, 1);
    await budget.hasRoom(bob, 'FREE');
    assert.equal(state.reads, 2);
    clock.advance(1);
    await budget.hasRoom(ada, 'FREE');
    assert.equal(state.reads, 3);
    state.flushes += 1;
    state.projectedBytes = QUOTA_BYTES;
    assert.equal(await budget.hasRoom(ada, 'FREE'), false);
    assert.equal(state.reads, 4);
  });

  test('reads a sum again that the cache has dropped', async () => {
    const { budget, state, sums } = budgetWith(0);
    await budget.hasRoom(ada, 'FREE');
    sums.clear();
    await budget.hasRoom(ada, 'FREE');
    assert.equal(state.reads, 2);
  });

  test('reads no sum for an account without a quota', async () => {
    const { budget, state } = budgetWith(QUOTA_BYTES);
    assert.equal(await budget.hasRoom(ada, 'PRO'), true);
    assert.equal(state.reads, 0);
  });
});
