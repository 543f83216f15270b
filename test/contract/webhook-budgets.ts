/** The contracts of core/ports/webhook-budgets.ts, waiting-deliveries.ts and waiting-pushes.ts, on every store. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { uuids } from '../../adapters/node/ids.ts';
import { type LogPosition, streamName } from '../../core/kernel/envelope.ts';
import {
  type AccountId,
  type EventId,
  timestamp,
  type WebhookDeliveryId,
  type WebhookId,
} from '../../core/kernel/ids.ts';
import type { WaitingDeliveries, WaitingRow } from '../../core/ports/waiting-deliveries.ts';
import type { WaitingPushes } from '../../core/ports/waiting-pushes.ts';
import type { WebhookBudgets } from '../../core/ports/webhook-budgets.ts';

export interface BudgetStores {
  readonly budgets: WebhookBudgets;
  readonly waiting: WaitingPushes;
  readonly rows: WaitingDeliveries;
}

const TEN = timestamp('2026-11-21T10:00:00.000Z');
const ELEVEN = timestamp('2026-11-21T11:00:00.000Z');
const TWELVE = timestamp('2026-11-21T12:00:00.000Z');
const HOURS = [TEN, ELEVEN, TWELVE];

/** Declares the suite; `open` is called for each test. */
export function webhookBudgetsContract(store: string, open: (context: TestContext) => Promise<BudgetStores>): void {
  describe(`budgets of webhook deliveries on ${store}`, () => {
    test('are taken from the earliest hours with room, up to the bound of each and not one more', async (context) => {
      const { budgets } = await open(context);
      const account = uuids.next<AccountId>();
      const take = (count: number) => budgets.take(account, { hours: HOURS, count, perHour: 5 });
      assert.deepEqual(await take(4), [{ hour: TEN, first: 0, count: 4 }]);
      assert.deepEqual(await take(1), [{ hour: TEN, first: 4, count: 1 }]);
      assert.deepEqual([await budgets.taken(account, TEN), await budgets.taken(account, ELEVEN)], [5, 0]);
      assert.deepEqual(await take(6), [
        { hour: ELEVEN, first: 0, count: 5 },
        { hour: TWELVE, first: 0, count: 1 },
      ]);
      assert.equal(await take(5), null, 'takes nothing');
      assert.deepEqual(await take(4), [{ hour: TWELVE, first: 1, count: 4 }]);
      assert.equal(await take(1), null);
    });

    test('are of each account, and forgotten with their hour', async (context) => {
      const { budgets } = await open(context);
      const [one, other] = [uuids.next<AccountId>(), uuids.next<AccountId>()];
      const wanted = { hours: [TEN, ELEVEN], count: 1, perHour: 1 };
      for (const account of [one, other]) assert.deepEqual(await budgets.take(account, wanted), [part(TEN)]);
      await budgets.removeBefore(ELEVEN);
      assert.deepEqual(await budgets.take(one, wanted), [part(TEN)]);
    });

    test('are never exceeded, however many take at the same time', async (context) => {
      const { budgets } = await open(context);
      const account = uuids.next<AccountId>();
      const taken = await Promise.all(
        Array.from({ length: 20 }, () => budgets.take(account, { hours: HOURS, count: 3, perHour: 10 })),
      );
      const numbers = taken.flatMap((parts) =>
        (parts ?? []).flatMap(({ hour, first, count }) =>
          Array.from({ length: count }, (_, index) => `${hour} ${first + index}`),
        ),
      );
      assert.deepEqual([numbers.length, new Set(numbers).size], [30, 30]);
      assert.equal(taken.filter((parts) => parts === null).length, 10);
    });

    test('that are lowered in between leave full hours as they are', async (context) => {
      const { budgets } = await open(context);
      const account = uuids.next<AccountId>();
      await budgets.take(account, { hours: HOURS, count: 12, perHour: 10 });
      assert.deepEqual(await budgets.take(account, { hours: HOURS, count: 2, perHour: 3 }), [
        { hour: ELEVEN, first: 2, count: 1 },
        { hour: TWELVE, first: 0, count: 1 },
      ]);
    });
  });

  describe(`deliveries that are still to be made on ${store}`, () => {
    test('are one row for a push and webhook, which moves on, and knows how many are ahead', async (context) => {
      const { rows } = await open(context);
      const [account, other] = [uuids.next<AccountId>(), uuids.next<AccountId>()];
      const [hook, second] = [uuids.next<WebhookId>(), uuids.next<WebhookId>()];
      const late = newRow(account, hook, 20n, 3);
      const early = newRow(account, hook, 10n, 2);
      const beside = { ...early, webhook: second, waiting: 4 };
      const foreign = newRow(other, uuids.next(), 5n, 7);
      for (const row of [late, early, beside, foreign]) await rows.add(row, []);
      const inOrder = async () => (await rows.earliest(account)).toSorted((a, b) => a.waiting - b.waiting);
      assert.deepEqual(await inOrder(), [early, beside]);
      assert.deepEqual(await rows.newest(account, hook, 10), [
        { ...late, ahead: 6, webhooks: 1 },
        { ...early, ahead: 0, webhooks: 2 },
      ]);
      assert.deepEqual(await rows.newest(account, hook, 1), [{ ...late, ahead: 6, webhooks: 1 }]);
      assert.deepEqual(await rows.newest(other, hook, 10), []);
      assert.deepEqual([await rows.load(account, 0), await rows.load(account, 3)], [9, 10]);
      await rows.moveOn(early.push, hook, { passed: 5, waiting: 1 });
      await rows.add(early, []);
      await rows.moveOn(early.push, hook, { passed: 4, waiting: 2 });
      const [moved] = await rows.newest(account, hook, 10).then((found) => found.slice(-1));
      assert.deepEqual([moved?.passed, moved?.waiting], [5, 1]);
      await rows.moveOn(early.push, hook, { passed: 9, waiting: 0 });
      await rows.moveOn(early.push, hook, { passed: 9, waiting: 0 });
      assert.deepEqual(await inOrder(), [beside]);
      await rows.forgetWebhook(account, second);
      assert.deepEqual(await inOrder(), [late]);
      assert.deepEqual((await rows.accounts()).toSorted(), [account, other].toSorted());
      assert.deepEqual(await rows.backlog(), { pending: 10, oldestAt: TEN });
      await rows.forgetAccount(account);
      assert.deepEqual(await rows.accounts(), [other]);
      await rows.forgetAccount(other);
      assert.deepEqual(await rows.backlog(), { pending: 0, oldestAt: null });
    });

    test('are found by the ids that they will have', async (context) => {
      const { rows } = await open(context);
      const account = uuids.next<AccountId>();
      const hook = uuids.next<WebhookId>();
      const namespace = uuids.next();
      const ids = Array.from({ length: 2_000 }, (_, at) => uuids.derive<WebhookDeliveryId>(namespace, `${at}`));
      const row = newRow(account, hook, 10n, ids.length);
      await rows.add(row, ids);
      await rows.add(newRow(account, hook, 20n, 1), [uuids.derive<WebhookDeliveryId>(namespace, 'other')]);
      const [first, last] = [ids[0] ?? assert.fail(), ids.at(-1) ?? assert.fail()];
      const found = [{ ...row, ahead: 0, webhooks: 1 }];
      for (const id of [first, last]) assert.deepEqual(await rows.mayHold(account, hook, id), found);
      assert.deepEqual(await rows.mayHold(account, uuids.next(), first), []);
      assert.deepEqual(await rows.mayHold(uuids.next(), hook, first), []);
      assert.deepEqual(await rows.mayHold(account, hook, uuids.derive(namespace, 'unknown')), []);
    });
  });

  describe(`pushes that wait for room on ${store}`, () => {
    test('are kept in the order of the log, with how far each came, until they are removed', async (context) => {
      const { waiting } = await open(context);
      const [account, other] = [uuids.next<AccountId>(), uuids.next<AccountId>()];
      const [second, first, foreign] = [newPush(account, 20n), newPush(account, 10n), newPush(other, 5n)];
      for (const push of [second, first, foreign]) await waiting.put(push);
      assert.deepEqual(await waiting.earliest(account, 10), [first, second]);
      assert.deepEqual(await waiting.earliest(account, 1), [first]);
      await waiting.put({ ...first, refsDone: 7 });
      await waiting.put(first);
      await waiting.remove(second.id);
      await waiting.remove(second.id);
      assert.deepEqual(await waiting.earliest(account, 10), [{ ...first, refsDone: 7 }]);
      assert.deepEqual((await waiting.accounts()).toSorted(), [account, other].toSorted());
      await waiting.forgetAccount(account);
      assert.deepEqual(await waiting.accounts(), [other]);
      assert.deepEqual(await waiting.earliest(other, 10), [foreign]);
    });
  });
}

const part = (hour: typeof TEN) => ({ hour, first: 0, count: 1 });

function newPush(account: AccountId, position: bigint) {
  const stream = streamName('repository', uuids.next());
  return { id: uuids.next<EventId>(), account, stream, revision: 3, position: position as LogPosition, refsDone: 0 };
}

function newRow(account: AccountId, webhook: WebhookId, position: bigint, waiting: number): WaitingRow {
  const stream = streamName('repository', uuids.next());
  const push = { push: uuids.next<EventId>(), stream, revision: 3, position: position as LogPosition, createdAt: TEN };
  return { ...push, account, webhook, kinds: ['push', 'create'], passed: 0, waiting };
}
