/** What the first attempts of a payload take of the hour's budget. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { DEFAULT_PLANS } from '../../../../core/account/plans.ts';
import { hourOf, takeNow, WEBHOOK_BUDGET_PAYLOAD_BYTES } from '../../../../core/use-cases/webhooks/delivery-budget.ts';
import { newAccount } from '../../../support/accounts.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryWebhookBudgets } from '../../../support/memory/webhook-budgets.ts';
import { startNode } from '../../../support/node.ts';

test('A first attempt counts once more from each full length of its payload on, and not a byte earlier', async () => {
  const node = await startNode(createMemoryEventStore());
  const account = await newAccount(node, 'ada');
  const budgets = createMemoryWebhookBudgets();
  const plan = { ...DEFAULT_PLANS.FREE, deliveries_per_hour: 100 };
  const context = { ...node, budgets, plans: { FREE: plan, PRO: plan, PLATFORM: plan } };
  let before = 0;
  for (const [payloadBytes, counted] of [
    [WEBHOOK_BUDGET_PAYLOAD_BYTES - 1, 1],
    [WEBHOOK_BUDGET_PAYLOAD_BYTES, 2],
    [2 * WEBHOOK_BUDGET_PAYLOAD_BYTES - 1, 2],
    [2 * WEBHOOK_BUDGET_PAYLOAD_BYTES, 3],
  ] as const) {
    assert.equal(await takeNow(context, account, { count: 1, payloadBytes }, false), 1);
    const taken = await budgets.taken(account, hourOf(node.clock.now()));
    assert.equal(taken - before, counted, `${payloadBytes} bytes`);
    before = taken;
  }
});
