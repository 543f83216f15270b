/** How many deliveries of an account wait in rows before a further push becomes one row. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  StalledAccounts,
  type StalledOptions,
  WEBHOOK_ROW_LEAST,
  WEBHOOK_WAITING_DELIVERIES_MAX,
} from '../../../../core/use-cases/webhooks/accounts-over-budget.ts';
import { newAccount } from '../../../support/events.ts';
import { createMemoryWaitingDeliveries, createMemoryWaitingPushes } from '../../../support/memory/webhook-budgets.ts';
import { createTestClock } from '../../../support/test-clock.ts';

test('An account is full when as many deliveries wait as the limit, and not one earlier; a row counts as the least', async () => {
  for (const [load, isFull] of [
    [WEBHOOK_WAITING_DELIVERIES_MAX - 1, false],
    [WEBHOOK_WAITING_DELIVERIES_MAX, true],
  ] as const) {
    const leasts: number[] = [];
    const waiting: StalledOptions['waiting'] = {
      ...createMemoryWaitingDeliveries(),
      load: async (_account, least) => {
        leasts.push(least);
        return load;
      },
    };
    const stalled = new StalledAccounts({
      ...{ waiting, pushes: createMemoryWaitingPushes(), clock: createTestClock() },
      events: { readStream: async () => [] },
      room: { mayResume: async () => true },
      paceOf: async () => null,
      expand: async () => [],
      add: async () => undefined,
      listed: async () => undefined,
    });
    assert.equal(await stalled.isFull(newAccount()), isFull, `${load}`);
    assert.deepEqual(leasts, [WEBHOOK_ROW_LEAST]);
  }
});
